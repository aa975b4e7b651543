/** Reads sizes in bytes, as options are written. */

const sizeForm = /^(\d+(?:\.\d+)?) ?(?:([kmgt])(i)?)?b?$/i;

/**
 * Returns the bytes of a number, or of a text such as "10MB" (1000 each) or "1GiB" (1024 each);
 * NaN if it is neither.
 */
export function bytesOf(value: unknown): number {
  const [, amount, prefix = "", binary] = sizeForm.exec(String(value)) ?? [];
  if (amount === undefined) return Number.NaN;
  if (prefix === "") return Number(amount);
  const power = " kmgt".indexOf(prefix.toLowerCase());
  return Math.floor(Number(amount) * (binary === undefined ? 1000 : 1024) ** power);
}

const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** Returns a size for people, such as "1.5 GiB" or "640 MiB". */
export function sizeText(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** power;
  return `${amount < 10 ? Number(amount.toFixed(1)) : Math.round(amount)} ${units[power]}`;
}
