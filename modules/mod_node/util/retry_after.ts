/**
 * Returns the milliseconds that a `Retry-After` header specifies, in seconds or as a date;
 * undefined if it cannot be parsed.
 */
export function retryAfterMs(header: string | readonly string[] | null | undefined): number | undefined {
  const text = (typeof header === "string" ? header : header?.[0])?.trim() ?? "";
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}
