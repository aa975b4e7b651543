/** Checks of `modhost doctor` on the store that several hosts share, if `node_store` names one. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { inspectStore, type SharedStoreSettings, type StoreInspection } from "modhost/node";
import {
  type Check,
  counted,
  existing,
  type Finding,
  type Installation,
  isWritable,
  problem,
  warning,
} from "../../../../core/cli/index.ts";
import { size_text } from "../../../../core/net/http.ts";
import { inspectedRepo, repoOf } from "./installation.ts";

/** The PostgreSQL version that the tests run with. */
const TESTED_VERSION = 15;
/**
 * Milliseconds by which the clocks may differ. Object stores refuse requests once the difference
 * reaches 15 minutes.
 */
const MAX_SKEW_MS = 60_000;
/** Milliseconds that are always left on the lease of a healthy host. A lease lasts 30,000. */
const LATE_MS = 15_000;

/** The input of each check. Checks run only if a store is configured. */
interface StoreCheckContext {
  readonly store: StoreInspection;
  readonly settings: SharedStoreSettings;
  readonly installation: Installation;
}

/** Returns undefined if no shared store is configured. */
export function storeSettings({ config }: Installation): SharedStoreSettings | undefined {
  try {
    return config?.value("node_store") as SharedStoreSettings | undefined;
  } catch {
    // The config check reports what is wrong with the value.
    return undefined;
  }
}

interface StoreCheck extends Pick<Check, "name" | "help"> {
  findings(context: StoreCheckContext): readonly Finding[] | Promise<readonly Finding[]>;
}

/**
 * Returns the checks. `waitMs` is how long to wait for the database and for a notification from it;
 * by default several seconds.
 */
export function checksOfStore(waitMs?: number): readonly Check[] {
  // All checks share one inspection.
  const known = new WeakMap<Installation, Promise<StoreInspection>>();
  const look = async (settings: SharedStoreSettings, installation: Installation) =>
    inspectStore(settings, { metadata: await metadataOf(installation), waitMs });
  return declared.map(({ name, help, findings }) => ({
    name,
    help,
    async run(installation) {
      const settings = storeSettings(installation);
      if (settings === undefined) return [];
      const looking = known.get(installation) ?? look(settings, installation);
      known.set(installation, looking);
      return findings({ store: await looking, settings, installation });
    },
  }));
}

const declared: readonly StoreCheck[] = [
  {
    name: "shared database",
    help: "With node_store: the database can be reached, loses no confirmed writes, sends notifications, and has suitable tables",
    findings: ({ store }) => {
      const { database } = store;
      if ("fault" in database)
        return [
          problem(database.fault, "start the database, or correct sql, sql_password and PGPASSWORD of node_store"),
        ];
      const { version, settings, listens, tables, schema, mayCreate, isReadOnly } = database.found;
      const { synchronous_commit: commit, synchronous_standby_names: standbys } = settings;
      return [
        ...(Number.parseInt(version, 10) < TESTED_VERSION
          ? [warning(`The database is PostgreSQL ${version}; tests use ${TESTED_VERSION}`, "update it")]
          : []),
        ...(isReadOnly
          ? [
              problem(
                "The database accepts no writes: default_transaction_read_only is on",
                "set it to off for this database and role, or name a database that accepts writes in sql of node_store",
              ),
            ]
          : []),
        ...(commit === "off" || settings.fsync === "off"
          ? [
              problem(
                "The database may lose writes that it has confirmed: synchronous_commit or fsync is off",
                "ALTER DATABASE … SET synchronous_commit = on; fsync = on in postgresql.conf",
              ),
            ]
          : []),
        ...(commit === "local" && standbys !== ""
          ? [
              warning(
                "A standby of the database may lack confirmed writes: synchronous_commit is local",
                "set it to on, or never let that standby take over",
              ),
            ]
          : []),
        ...(listens
          ? []
          : [
              warning(
                "Notifications of the database do not arrive (LISTEN), as with some poolers: other hosts see changes up to a second later",
                "name the database itself in sql, or make the pooler keep sessions",
              ),
            ]),
        ...(tables === undefined && !mayCreate
          ? [
              problem(
                `The schema ${schema} does not exist yet, and this role may not create it`,
                `CREATE SCHEMA ${schema} AUTHORIZATION …; or GRANT CREATE ON DATABASE`,
              ),
            ]
          : []),
        ...(tables === undefined ? [] : tableFindings(tables, schema)),
      ];
    },
  },
  {
    name: "shared objects",
    help: "With node_store: the object store can be reached, keys and bucket are correct, conditional writes work, the clocks agree, and the objects belong to the database",
    findings: ({ store: { objects, database } }) => {
      if ("fault" in objects) {
        // Most faults end with their own remedy.
        const [text = "", remedy = "start the object store, or correct s3, endpoint and credentials of node_store"] =
          objects.fault.split(/\.? Remedy: /);
        return [problem(text, remedy)];
      }
      const { ahead, store } = objects.found;
      const tables = "found" in database ? database.found.tables : undefined;
      return [
        ...(Math.abs(ahead) > MAX_SKEW_MS
          ? [
              warning(
                `The clock of the object store is ${Math.abs(ahead) / 1000} s ${ahead > 0 ? "ahead of" : "behind"} the clock of this host; from 15 minutes on, requests are refused`,
                "set the clock (timedatectl), and synchronize it with NTP",
              ),
            ]
          : []),
        ...(tables === undefined || tables.store === "" ? [] : pairFindings(tables, store)),
      ];
    },
  },
  {
    name: "shared cache",
    help: "With node_store: the folder of the cache is writable, and there is room for the maximum size of the cache",
    findings: ({ store: { cache }, installation: { system } }) => {
      const { folder, bytes, maxBytes } = cache;
      const above = existing(folder);
      if (!isWritable(above))
        return [
          problem(`${above} cannot be written to`, "chown it to the user that runs the server, or set cache_path"),
        ];
      const free = system.space(above)?.free;
      if (free === undefined || bytes + free >= maxBytes) return [];
      return [
        warning(
          `The cache ${folder} may grow to ${size_text(maxBytes)}, has ${size_text(bytes)}, and only ${size_text(free)} are free`,
          "make room, or reduce cache of node_store",
        ),
      ];
    },
  },
  {
    name: "shared keys",
    help: "With node_store: shared keys for names can be read, and no other user can read the files with secrets",
    findings: ({ store: { keys, keysFault }, settings }) => [
      ...(keysFault === undefined
        ? []
        : [problem(keysFault, "use the same file for keys_secret of node_store on every host")]),
      ...(settings.keys_secret === undefined && keys > 0
        ? [
            warning(
              `Hosts share ${counted(keys, "key")} for names, and this host cannot read them`,
              "set keys_secret of node_store, as on the other hosts",
            ),
          ]
        : []),
      ...[settings.credentials, settings.sql_password, settings.keys_secret].flatMap((path) => {
        const found = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false });
        if (found === undefined || (found.mode & 0o077) === 0) return [];
        return [warning(`Other users can read ${path}`, `chmod 600 ${path}`)];
      }),
    ],
  },
  {
    name: "shared hosts",
    help: "With node_store: the server that runs here has a session, no host has ended without closing its session, and every copied repo is complete",
    findings: async ({ store: { database, unfinished }, installation }) => [
      ...unfinished.map((folder) =>
        warning(
          `Only a part of the repo ${folder} is in the shared store`,
          `run modhost node migrate ${folder} shared again, on the machine that has this repo`,
        ),
      ),
      ...("found" in database && database.found.tables !== undefined
        ? hostFindings(database.found.tables, installation, (await inspectedRepo(installation))?.peer)
        : []),
    ],
  },
];

type Tables = NonNullable<Extract<StoreInspection["database"], { found: unknown }>["found"]["tables"]>;

function tableFindings({ version, known, missing }: Tables, schema: string): Finding[] {
  if (missing.length > 0) {
    const [first, ...more] = missing;
    const text = `This role may not ${first}${more.length === 0 ? "" : ` and ${more.length} more`} (schema ${schema})`;
    return [problem(text, "let all hosts use the role that owns the schema, or grant it all rights there")];
  }
  if (version === known) return [];
  const remedy =
    version > known
      ? "update modhost here: all hosts use one version"
      : "use the version of modhost that all other hosts have";
  return [problem(`The schema ${schema} has version ${version}, and this program reads ${known}`, remedy)];
}

function pairFindings({ store, position }: Tables, named: string | undefined): Finding[] {
  if (named === undefined) {
    if (position === 0) return [];
    return [
      problem(
        "The objects that the database lists do not exist: there is no store under this prefix",
        "correct s3 of node_store, or restore the objects from a backup, including the object store",
      ),
    ];
  }
  if (named === store) return [];
  return [
    problem(
      `The objects belong to the store ${named}, but the database belongs to ${store}`,
      "correct s3 or sql of node_store: each store has its own prefix and its own schema",
    ),
  ];
}

function hostFindings({ hosts }: Tables, { running }: Installation, own: string | undefined): Finding[] {
  const here = hosts.filter(({ peer, isAlive }) => peer === own && isAlive);
  const left = Math.max(...here.map((host) => host.left));
  const gone = hosts.filter(({ peer, isAlive }) => peer !== own && !isAlive);
  const slow = "see modhost status and the log of the server: the network may be slow, or the machine overloaded";
  return [
    ...(here.length > 1
      ? [
          problem(
            `${here.map(({ name }) => name).join(" and ")} have the same identity, ${own}: each ends the sessions of the other, and writes then fail`,
            "stop one of the hosts and give it its own repo, which it creates if there is none",
          ),
        ]
      : []),
    ...(running !== undefined && here.length === 0
      ? [
          problem(
            "The server that runs here has no session: its writes are refused until it has joined again, which it tries by itself",
            slow,
          ),
        ]
      : []),
    ...(running !== undefined && here.length > 0 && left < LATE_MS
      ? [
          warning(
            `The server that runs here is late: its session ends in ${Math.round(left / 1000)} s, and it should have renewed it by now`,
            slow,
          ),
        ]
      : []),
    ...gone.map(({ name, peer, left }) =>
      warning(
        `The session of the host ${name} (${peer}) ended ${Math.round(-left / 1000)} s ago, and the host has not closed it`,
        "other hosts have taken over its work: start it again, or ignore this",
      ),
    ),
  ];
}

/** The default location of the cache is next to the metadata. */
async function metadataOf(installation: Installation): Promise<string> {
  return (await inspectedRepo(installation))?.metadata?.path ?? join(repoOf(installation), "metadata");
}
