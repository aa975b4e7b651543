/**
 * Milliseconds that a `Retry-After` header asks for, in seconds or by a date; undefined where it
 * says nothing that can be read.
 */
export function retryAfterMs(header: string | readonly string[] | null | undefined): number | undefined {
  const text = (typeof header === "string" ? header : header?.[0])?.trim() ?? "";
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}
