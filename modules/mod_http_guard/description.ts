/** Describes a guard in words for people, without header values and passwords. */
import type { MiddlewareDescription } from "../../core/types.ts";
import type { GuardEntry } from "./options.ts";

export type Settings = NonNullable<MiddlewareDescription["settings"]>;

const DAY = 86_400;

/** Describes the checks in their order. `headers` contains the names of added headers. */
export function settingsOf(entry: GuardEntry, headers: readonly string[]): Settings {
  const { allow, deny, https, hsts, rate, burst, identity_headers } = entry;
  const addresses = [
    ...(allow.length > 0 ? [`only ${allow.join(", ")}`] : []),
    ...(deny.length > 0 ? [`not ${deny.join(", ")}`] : []),
  ];
  const secure = [
    ...(https ? ["plain HTTP is redirected"] : []),
    ...(hsts > 0 ? [`browsers use only HTTPS for ${lengthOf(hsts)}`] : []),
  ];
  return [
    {
      title: "Identity",
      text: identity_headers.length === 0 ? "" : `${identity_headers.join(", ")} of trusted proxies`,
    },
    { title: "Headers", text: headers.join(", ") },
    { title: "Addresses", text: addresses.join("; ") },
    { title: "HTTPS", text: secure.join("; ") },
    { title: "Rate", text: rate === "" ? "" : `${rate} from an address${burst > 0 ? `, ${burst} at once` : ""}` },
    { title: "Sign-in", text: waysIn(entry).join(", or ") },
  ].filter(({ text }) => text !== "");
}

function waysIn({ users, token_scope: scope, identity_headers }: GuardEntry): string[] {
  return [
    ...(users.length > 0 ? [`password of ${users.includes("*") ? "any user" : users.join(", ")}`] : []),
    ...(scope === "" ? [] : [`token with scope app:${scope}`]),
    ...(identity_headers.length > 0 ? ["a trusted proxy names the user"] : []),
  ];
}

function lengthOf(seconds: number): string {
  return seconds >= DAY ? `${Math.round(seconds / DAY)} d` : `${Math.round(seconds)} s`;
}
