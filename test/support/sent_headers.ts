import { headerOf } from "#core/util/header_fields.ts";

/** Makes the part of a request that contains its headers, for functions that read nothing else. */
export function sentHeaders(headers: Readonly<Record<string, string | undefined>>) {
  const rawHeaders = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]));
  return { raw: { rawHeaders }, header: (name: string) => headerOf(rawHeaders, name.toLowerCase()) };
}
