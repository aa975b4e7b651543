/**
 * A number with its noun: `1 key`, `2 keys`, `0 entries`. `plural`: where it is not the noun with
 * an s.
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
