// A module that cannot be loaded beside its worker, where a test wants it so: it listens on a port, say.
if (process.env.TEST_LOADS_ONCE && process.argv.at(2) === "cell") {
  throw new Error("the port is taken");
}
