/** Address of a database, parsed from its URL, and options of its use. */
import { failure } from "../../../util/errors.ts";
import { type SqlTls, takeTls } from "./tls.ts";

export interface SqlAddress {
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket, instead of host and port. */
  readonly path?: string;
}

export interface SqlSettings {
  /** Tried in turn until one accepts writes. */
  readonly addresses: readonly [SqlAddress, ...SqlAddress[]];
  /** URL for the client, with one host and without parameters of this program. */
  readonly url: string;
  /**
   * Schema of all tables and functions. Several stores can share a database with different schemas.
   */
  readonly schema: string;
  readonly tls: SqlTls | undefined;
}

export interface SqlLogOptions {
  readonly url: string;
  /** Name of the host for people who inspect the database. */
  readonly name: string;
  /** Unique name of the host's peer. Opening the log ends earlier sessions of the same peer. */
  readonly peer: string;
  /** Milliseconds after which a silent host loses its session, by the clock of the database. */
  readonly leaseMs?: number;
  /** Milliseconds between reads of the log when notices do not arrive. */
  readonly pollMs?: number;
  /** Milliseconds for which calls wait for an unreachable database. */
  readonly commitMs?: number;
  readonly refreshMs?: number;
  /** Minimum number of commits, and minimum age in milliseconds, that stay in the log. */
  readonly keepCommits?: number;
  readonly keepMs?: number;
  /** Called repeatedly while another process uses the same peer: two hosts have one identity. */
  readonly onTwin?: (name: string, session: number) => void;
}

/** Returns the addresses for messages. */
export const describeAddresses = ({ addresses }: SqlSettings): string =>
  addresses.map(({ host, port, path }) => path ?? `${host}:${port}`).join(", ");

const DEFAULT_SCHEMA = "modhost";
const form = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?@]*)(.*)$/;

/**
 * Parses `postgres://user:password@host:5432,standby:5432/database?schema=modhost`. The parameter
 * `host=/run/postgresql` selects a socket. `tls.ts` and the client use the other parameters.
 *
 * @throws NodeError that does not contain the password
 */
export function sqlSettings(text: string): SqlSettings {
  const [, start = "", hosts = "", rest = ""] = form.exec(text) ?? [];
  const first = hosts.split(",")[0] || "localhost";
  if (start === "" || !URL.canParse(start + first + rest)) {
    throw failure("STORE_ADDRESS_INVALID", {
      reason:
        "the address of the database is postgres://user:password@host:port/database, with %-escapes in user and password",
    });
  }
  const url = new URL(start + first + rest);
  const schema = url.searchParams.get("schema") ?? DEFAULT_SCHEMA;
  if (!/^[a-z_][a-z0-9_]{0,47}$/.test(schema)) {
    throw failure("STORE_ADDRESS_INVALID", {
      reason: `schema=${schema}: a schema is up to 48 small letters, digits and _, and does not begin with a digit`,
    });
  }
  const tls = takeTls(url);
  const folder = url.searchParams.get("host");
  for (const name of ["schema", "host", "target_session_attrs"]) url.searchParams.delete(name);
  const addresses = folder?.startsWith("/")
    ? [{ host: "localhost", port: 5432, path: `${folder}/.s.PGSQL.${url.port || 5432}` }]
    : hosts.split(",").map(addressOf);
  return { addresses: addresses as unknown as SqlSettings["addresses"], url: url.href, schema, tls };
}

function addressOf(text: string): SqlAddress {
  const { hostname, port } = new URL(`postgres://${text || "localhost"}`);
  return { host: hostname.replace(/^\[(.*)\]$/, "$1"), port: Number(port || 5432) };
}
