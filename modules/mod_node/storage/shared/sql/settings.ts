/** Where a database is, as its URL says, and how a host uses it. */
import { NodeError } from "../../../util/errors.ts";

export interface SqlAddress {
  readonly host: string;
  readonly port: number;
  /** A socket in the file system, in place of host and port. */
  readonly path?: string;
}

export interface SqlSettings {
  /** Tried in turn: the one that takes writes is used. */
  readonly addresses: readonly [SqlAddress, ...SqlAddress[]];
  /** For the client: one host, and without what is ours. */
  readonly url: string;
  /** All tables and functions are in it: several stores share a database by different ones. */
  readonly schema: string;
}

export interface SqlLogOptions {
  readonly url: string;
  /** For people who look into the database. */
  readonly name: string;
  /** Nobody else has it: what it had begun before is over when the log is opened. */
  readonly peer: string;
  /** Milliseconds after which a silent host is shut out, by the clock of the database. */
  readonly leaseMs?: number;
  /** Milliseconds between two looks, where notices do not come. */
  readonly pollMs?: number;
  /** Milliseconds for which calls wait for a database that cannot be reached. */
  readonly commitMs?: number;
  readonly refreshMs?: number;
  /** Commits and milliseconds that the log is kept, whichever is more. */
  readonly keepCommits?: number;
  readonly keepMs?: number;
}

/** For people. */
export const placeOf = ({ addresses }: SqlSettings): string =>
  addresses.map(({ host, port, path }) => path ?? `${host}:${port}`).join(", ");

const DEFAULT_SCHEMA = "modhost";
const form = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?@]*)(.*)$/;

/**
 * `postgres://user:password@host:5432,standby:5432/database?schema=modhost`; `host=/run/postgresql` for a socket; other
 * parameters are those of the client (`sslmode`).
 *
 * @throws NodeError that does not show the password
 */
export function sqlSettings(text: string): SqlSettings {
  const [, start = "", hosts = "", rest = ""] = form.exec(text) ?? [];
  const first = hosts.split(",")[0] || "localhost";
  if (start === "" || !URL.canParse(start + first + rest)) {
    throw new NodeError(
      "the address of the database is postgres://user:password@host:port/database, with %-escapes in user and password",
    );
  }
  const url = new URL(start + first + rest);
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  if (!/^[a-z_][a-z0-9_]{0,47}$/.test(schema)) {
    throw new NodeError(`schema=${schema}: a schema is up to 48 small letters, digits and _, and begins with no digit`);
  }
  const folder = url.searchParams.get("host");
  for (const name of ["schema", "host", "target_session_attrs"]) url.searchParams.delete(name);
  const addresses = folder?.startsWith("/")
    ? [{ host: "localhost", port: 5432, path: `${folder}/.s.PGSQL.${url.port || 5432}` }]
    : hosts.split(",").map(addressOf);
  return { addresses: addresses as unknown as SqlSettings["addresses"], url: url.href, schema };
}

function addressOf(text: string): SqlAddress {
  const { hostname, port } = new URL(`postgres://${text || "localhost"}`);
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port || 5432) };
}
