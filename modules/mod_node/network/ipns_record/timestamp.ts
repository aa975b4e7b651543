/** Parses and formats timestamps of IPNS records: RFC 3339 in UTC, to the nanosecond. */

/** Returns nanoseconds since 1970; undefined for a text that is not RFC 3339. */
export function parseTimestamp(text: string): bigint | undefined {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (parts === null) return undefined;
  const [, whole, fraction = "", zone] = parts;
  const seconds = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(seconds)) return undefined;
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.slice(0, 9).padEnd(9, "0"));
}

/** Formats a timestamp without trailing zeros in the fraction. */
export function formatTimestamp(nanoseconds: bigint): string {
  const fraction = ((nanoseconds % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const whole = new Date(Number((nanoseconds - fraction) / 1_000_000n)).toISOString().slice(0, 19);
  const digits = fraction.toString().padStart(9, "0").replace(/0+$/, "");
  return digits === "" ? `${whole}Z` : `${whole}.${digits}Z`;
}

/** Returns a time in nanoseconds since 1970, that many milliseconds from now. */
export const timestampAfter = (milliseconds: number): bigint =>
  BigInt(Math.round(Date.now() + milliseconds)) * 1_000_000n;
