/**
 * Text without all the same letters at its end or at both ends. A regular expression such as
 * `/\/+$/` takes time with the square of a run of letters that is not at the end.
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
