// Steps the world of an SDF file with Gazebo's DART plugin, pushing links as told, and writes where the links are.
//
//     step_world WORLD.sdf STEP_S STEPS EVERY POSES.txt < pushes
//
// Standard input: the number of pushed links and their names, then for every step and each of these links the force
// [N] and the moment about the link's origin [N m], both in the link's frame (6 numbers). They are turned into the
// world frame by the pose before the step.
//
// POSES.txt: "links" and the scoped names; then at time 0 and after every EVERY steps a line with the time [s] and
// for every link its position [m] and quaternion w x y z in the world frame; last "step_us" and the duration of each
// step [us], measured around the engine's step alone. All numbers are written so that they read back exactly.
//
// What Gazebo's libraries say, warnings and notes included, goes to standard output and error (DART writes to both).
// Exit codes: 0 done, 2 bad input.

#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ignition/common/Console.hh>
#include <ignition/physics/FindFeatures.hh>
#include <ignition/physics/ForwardStep.hh>
#include <ignition/physics/FrameSemantics.hh>
#include <ignition/physics/GetEntities.hh>
#include <ignition/physics/Link.hh>
#include <ignition/physics/RequestEngine.hh>
#include <ignition/physics/config.hh>
#include <ignition/physics/sdf/ConstructWorld.hh>
#include <ignition/plugin/Loader.hh>
#include <sdf/Root.hh>
#include <sdf/World.hh>

namespace physics = ignition::physics;

using Features = physics::FeatureList<
    physics::AddLinkExternalForceTorque, physics::ForwardStep, physics::GetLinkFromModel,
    physics::GetModelFromWorld, physics::GetNestedModelFromModel, physics::LinkFrameSemantics,
    physics::sdf::ConstructSdfWorld>;
using Engine = physics::Engine3dPtr<Features>;
using World = physics::World3dPtr<Features>;
using Model = physics::Model3dPtr<Features>;
using Link = physics::Link3dPtr<Features>;

// A link to the plugin of whichever version is installed.
const char *const kPlugin = IGNITION_PHYSICS_ENGINE_INSTALL_DIR "/libignition-physics-dartsim-plugin.so";

struct NamedLink
{
  std::string name;
  Link link;
};

Engine LoadEngine()
{
  ignition::plugin::Loader loader;
  loader.LoadLib(kPlugin);
  for (const std::string &name : physics::FindFeatures3d<Features>::From(loader))
    return physics::RequestEngine3d<Features>::From(loader.Instantiate(name));
  throw std::runtime_error(std::string("no engine with the needed features in ") + kPlugin);
}

World LoadWorld(const Engine &engine, const std::string &path)
{
  sdf::Root root;
  const sdf::Errors errors = root.Load(path);
  for (const sdf::Error &error : errors)
    std::cerr << error << '\n';
  if (!errors.empty())
    throw std::runtime_error(path + " has errors");
  if (root.WorldCount() != 1)
    throw std::runtime_error(path + " must hold one <world>");
  return engine->ConstructWorld(*root.WorldByIndex(0));
}

// Links of a model, then those of the models nested in it, with the names of all models above as prefix.
void CollectLinks(const Model &model, const std::string &scope, std::vector<NamedLink> &links)
{
  const std::string prefix = scope + model->GetName() + "::";
  for (std::size_t i = 0; i < model->GetLinkCount(); ++i)
  {
    const Link link = model->GetLink(i);
    links.push_back({prefix + link->GetName(), link});
  }
  for (std::size_t i = 0; i < model->GetNestedModelCount(); ++i)
    CollectLinks(model->GetNestedModel(i), prefix, links);
}

template <typename T>
T Read(std::istream &in, const char *what)
{
  T value;
  if (!(in >> value))
    throw std::runtime_error(std::string("standard input: cannot read ") + what);
  return value;
}

std::vector<Link> ReadPushedLinks(std::istream &in, const std::vector<NamedLink> &links)
{
  std::map<std::string, Link> byName;
  for (const NamedLink &entry : links)
    byName[entry.name] = entry.link;
  std::vector<Link> pushed(Read<std::size_t>(in, "the number of pushed links"));
  for (Link &link : pushed)
  {
    const auto name = Read<std::string>(in, "the names of the pushed links");
    const auto found = byName.find(name);
    if (found == byName.end())
      throw std::runtime_error("no link is called " + name);
    link = found->second;
  }
  return pushed;
}

void Push(const Link &link, std::istream &in)
{
  Eigen::Vector3d force, moment;
  for (Eigen::Vector3d *vector : {&force, &moment})
    for (int k = 0; k < 3; ++k)
      (*vector)[k] = Read<double>(in, "a force or moment");
  const Eigen::Isometry3d pose = link->FrameDataRelativeToWorld().pose;
  link->AddExternalForce(
      physics::RelativeForce3d(physics::FrameID::World(), pose.linear() * force),
      physics::RelativePosition3d(physics::FrameID::World(), pose.translation()));
  link->AddExternalTorque(
      physics::RelativeTorque3d(physics::FrameID::World(), pose.linear() * moment));
}

void WritePoses(std::ostream &out, double time, const std::vector<NamedLink> &links)
{
  out << time;
  for (const NamedLink &entry : links)
  {
    const Eigen::Isometry3d pose = entry.link->FrameDataRelativeToWorld().pose;
    const Eigen::Quaterniond q(pose.linear());
    for (const double value : {pose.translation().x(), pose.translation().y(), pose.translation().z(),
                               q.w(), q.x(), q.y(), q.z()})
      out << ' ' << value;
  }
  out << '\n';
}

void Run(const std::string &path, double step, std::size_t steps, std::size_t every,
         const std::string &posesPath)
{
  const Engine engine = LoadEngine();
  const World world = LoadWorld(engine, path);
  std::vector<NamedLink> links;
  for (std::size_t i = 0; i < world->GetModelCount(); ++i)
    CollectLinks(world->GetModel(i), "", links);
  std::ofstream out(posesPath);
  out << std::setprecision(std::numeric_limits<double>::max_digits10) << "links";
  for (const NamedLink &entry : links)
    out << ' ' << entry.name;
  out << '\n';

  const std::vector<Link> pushed = ReadPushedLinks(std::cin, links);
  physics::ForwardStep::Input input;
  physics::ForwardStep::Output output;
  physics::ForwardStep::State state;
  using Clock = std::chrono::steady_clock;
  input.Get<Clock::duration>() =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step));
  std::vector<double> stepUs;
  WritePoses(out, 0.0, links);
  for (std::size_t k = 1; k <= steps; ++k)
  {
    for (const Link &link : pushed)
      Push(link, std::cin);
    const Clock::time_point begin = Clock::now();
    world->Step(output, state, input);
    stepUs.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    if (k % every == 0)
      WritePoses(out, static_cast<double>(k) * step, links);
  }
  out << "step_us";
  for (const double us : stepUs)
    out << ' ' << us;
  out << '\n';
  out.close();
  if (!out)
    throw std::runtime_error("cannot write " + posesPath);
}

int main(int argc, char **argv)
{
  if (argc != 6)
  {
    std::cerr << "usage: step_world WORLD.sdf STEP_S STEPS EVERY POSES.txt < pushes\n";
    return 2;
  }
  std::ios::sync_with_stdio(false);
  ignition::common::Console::SetVerbosity(3);  // errors, warnings and notes
  try
  {
    Run(argv[1], std::stod(argv[2]), std::stoul(argv[3]), std::stoul(argv[4]), argv[5]);
  }
  catch (const std::exception &error)
  {
    std::cerr << error.what() << '\n';
    return 2;
  }
  return 0;
}
