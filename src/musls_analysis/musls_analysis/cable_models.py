"""Cable models by which a replay can predict the load."""

RIGID_LINKS = "rigid_links"
ELASTIC = "elastic"
MASSLESS = "massless"

CABLE_MODELS = {
    RIGID_LINKS: "rigid links with universal joints, as many as the system has (the seed paper's)",
    "rigid_links:N": "N links, the joints' damping as given (a bending damping scales); 1 is a bar "
    "between two joints",
    ELASTIC: "stretchable, with mass, taut or slack; segments as many as the system has links",
    "elastic:N": "the same with N segments; 1 is a spring and damper that only pulls",
    MASSLESS: "inextensible and massless, taut or slack",
}
