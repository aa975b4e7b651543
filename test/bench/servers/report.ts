/** Tells the measuring process the port, and the CPU time whenever it asks, once `done` has done what else it asks; ends with it. */
export function report(port: number, done: (message: unknown) => unknown = () => undefined): void {
  process.on("message", async (message) => {
    await done(message);
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.on("disconnect", () => process.exit());
  process.send?.(port);
}
