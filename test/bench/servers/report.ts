/** Tells the measuring process the port, and the CPU time whenever it asks. */
export function report(port: number): void {
  process.on("message", () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.send?.(port);
}
