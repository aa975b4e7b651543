/**
 * Removes all repetitions of a letter from the end of a text, or from both ends. A regular
 * expression such as `/\/+$/` takes quadratic time if the text has a long run of that letter before
 * its end.
 */
export function trimEnd(text: string, letter: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === letter) end -= 1;
  return text.slice(0, end);
}

export function trimBoth(text: string, letter: string): string {
  const trimmed = trimEnd(text, letter);
  let start = 0;
  while (trimmed[start] === letter) start += 1;
  return trimmed.slice(start);
}
