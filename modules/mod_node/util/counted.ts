/**
 * Returns a number with its noun: `1 key`, `2 keys`, `0 entries`. `plural` is needed for nouns
 * whose plural does not end in a plain `s`.
 */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
