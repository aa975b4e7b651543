/** Reads the ACME settings from the configuration. */
import { isIP } from "node:net";
import type { Config } from "../config/index.ts";
import type { AcmeSettings } from "../tls/acme/index.ts";
import { asciiName } from "../tls/pair.ts";
import { invalidOption } from "../util/errors.ts";
import { attempt } from "./reading.ts";

/**
 * Returns undefined if no host uses ACME.
 * @throws {ModhostError} OPTION_INVALID for a name for which no certificate can be issued
 */
export function acmeSettings(config: Config, folder: string): AcmeSettings | undefined {
  const value = (name: string) => attempt(() => config.value(name));
  const text = (name: string) => value(name) as string | undefined;
  const written = (value("acme_hosts") ?? []) as string[];
  if (written.length === 0) return undefined;
  const ascii = (name: string) => asciiName(name.toLowerCase());
  const wrong = written.find((name) => !isIssuable(ascii(name)));
  if (wrong !== undefined) {
    const allowed = "it must be a public host name, without wildcards, which only DNS can prove";
    throw invalidOption("acme_hosts", wrong, allowed);
  }
  const hosts = [...new Set(written.map(ascii))];
  const id = text("acme_eab_id");
  const key = text("acme_eab_key");
  return {
    directory: text("acme_directory") ?? "",
    email: text("acme_email"),
    agree: value("acme_agree") === true,
    hosts,
    challenge: value("acme_challenge") === "tls-alpn-01" ? "tls-alpn-01" : "http-01",
    caFile: text("acme_ca_file"),
    eab: id === undefined || key === undefined ? undefined : { id, key },
    folder,
  };
}

/** Returns true if a certificate can be issued for the name. It must also be safe in file names. */
function isIssuable(name: string): boolean {
  return isIP(name) === 0 && /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+$/.test(name);
}
