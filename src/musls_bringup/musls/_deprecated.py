"""Old ways into `musls`: each works for one more release and warns."""

from types import ModuleType
from typing import Any

from musls_description.config.deprecation import Deprecation

ENVS = Deprecation("musls.envs", "musls.learning", "0.2")
AGENTS = Deprecation("musls.agents", "musls.learning", "0.2")
EVENTS = Deprecation("musls.events as a mapping", "musls.events.EVENTS", "0.2")
PLANTS = Deprecation("musls.plants as a mapping", "musls.plants.PLANTS", "0.2")
ALL = (ENVS, AGENTS, EVENTS, PLANTS)


class FormerRegistry(ModuleType):
    """A module that was a registry before: it can still be read as that mapping."""

    __all__: list[str]

    def __former(self) -> Any:
        name = self.__name__.rpartition(".")[2].upper()
        {"EVENTS": EVENTS, "PLANTS": PLANTS}[name].warn(3)
        return self.__dict__[name]

    def __getitem__(self, name: str) -> Any:
        return self.__former()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.__former()

    def __iter__(self) -> Any:
        return iter(self.__former())

    def __len__(self) -> int:
        return len(self.__former())

    def __getattr__(self, name: str) -> Any:
        if name not in ("keys", "values", "items", "get"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(self.__former(), name)
