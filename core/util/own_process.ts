/**
 * Returns true if a signal to `pid` reaches this process: by its id, or by its group (0 or a
 * negative id). Node.js accepts texts as numbers.
 */
export function isOwnProcess(pid: unknown): boolean {
  return [process.pid, 0, -process.pid].includes(Number(pid));
}
