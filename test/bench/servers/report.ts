/** Tells the measuring process the port, and the CPU time whenever it asks; ends with it. */
export function report(port: number): void {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.on("disconnect", () => process.exit());
  process.send?.(port);
}
