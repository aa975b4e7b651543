/**
 * Checks of `modhost doctor` on the store that several hosts share, where `node_store` names one.
 */
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
/** Milliseconds. A healthy host always has more than this left on its lease, which lasts 30,000. */
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
    help: "With node_store: the database is reached, keeps what it confirms, tells of news, and has tables that fit",
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
          ? [warning(`The database is PostgreSQL ${version}; this is tested with ${TESTED_VERSION}`, "update it")]
          : []),
        ...(isReadOnly
          ? [
              problem(
                "The database takes no writes: default_transaction_read_only is on",
                "set it to off for this database and role, or name the database that takes writes in sql of node_store",
              ),
            ]
          : []),
        ...(commit === "off" || settings.fsync === "off"
          ? [
              problem(
                "The database confirms what it may lose: synchronous_commit or fsync is off",
                "ALTER DATABASE … SET synchronous_commit = on; fsync = on in postgresql.conf",
              ),
            ]
          : []),
        ...(commit === "local" && standbys !== ""
          ? [
              warning(
                "A standby of the database may lack what was confirmed: synchronous_commit is local",
                "set it to on, or never let that standby take over",
              ),
            ]
          : []),
        ...(listens
          ? []
          : [
              warning(
                "Notices of the database do not come through (LISTEN), as with some poolers: other hosts hear of changes up to a second later",
                "name the database itself in sql, or have the pooler keep sessions",
              ),
            ]),
        ...(tables === undefined && !mayCreate
          ? [
              problem(
                `There is no schema ${schema} yet, and this role may not make it`,
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
    help: "With node_store: the object store is reached, its keys and bucket are right, conditional writes are honoured, the clocks agree, and it belongs to the database",
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
                `The clock of the object store is ${Math.abs(ahead) / 1000} s ${ahead > 0 ? "ahead of" : "behind"} the one here; requests are refused from 15 minutes on`,
                "set the clock (timedatectl), and keep it right by NTP",
              ),
            ]
          : []),
        ...(tables === undefined || tables.store === "" ? [] : pairFindings(tables, store)),
      ];
    },
  },
  {
    name: "shared cache",
    help: "With node_store: the folder of this host's copies can be written to, and what the cache may take fits",
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
          `The cache ${folder} may take ${size_text(maxBytes)}, has ${size_text(bytes)}, and only ${size_text(free)} are free`,
          "make room, or set cache of node_store to less",
        ),
      ];
    },
  },
  {
    name: "shared keys",
    help: "With node_store: keys for names can be read where hosts have them in common, and nobody else reads the files with secrets",
    findings: ({ store: { keys, keysFault }, settings }) => [
      ...(keysFault === undefined
        ? []
        : [problem(keysFault, "keys_secret of node_store is the same file on every host")]),
      ...(settings.keys_secret === undefined && keys > 0
        ? [
            warning(
              `Hosts have ${counted(keys, "key")} for names in common, and this one does not know them`,
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
    help: "With node_store: the server that runs here has a session, no host ended without a word, and no repo was copied there half",
    findings: async ({ store: { database, unfinished }, installation }) => [
      ...unfinished.map((folder) =>
        warning(
          `Only a part of the repo ${folder} is in the shared store`,
          `modhost node migrate ${folder} shared goes on, on the machine that has it`,
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
  return [problem(`The schema ${schema} has version ${version}, and this program knows ${known}`, remedy)];
}

function pairFindings({ store, position }: Tables, named: string | undefined): Finding[] {
  if (named === undefined) {
    if (position === 0) return [];
    return [
      problem(
        "The objects that the database lists are not there: under this prefix is nothing of a store",
        "correct s3 of node_store, or bring the objects back from a backup, with the one called store",
      ),
    ];
  }
  if (named === store) return [];
  return [
    problem(
      `The objects are those of the store ${named}, and the database is that of ${store}`,
      "correct s3 or sql of node_store: each store has a prefix and a schema of its own",
    ),
  ];
}

function hostFindings({ hosts }: Tables, { running }: Installation, own: string | undefined): Finding[] {
  const here = hosts.filter(({ peer, isAlive }) => peer === own && isAlive);
  const left = Math.max(...here.map((host) => host.left));
  const gone = hosts.filter(({ peer, isAlive }) => peer !== own && !isAlive);
  const slow = "see modhost status and the log of the server; is its network slow, or the machine overloaded?";
  return [
    ...(here.length > 1
      ? [
          problem(
            `${here.map(({ name }) => name).join(" and ")} have one identity, ${own}: each ends sessions of the other, and writes fail then`,
            "stop one of the hosts, and give it a repo of its own, which it makes where there is none",
          ),
        ]
      : []),
    ...(running !== undefined && here.length === 0
      ? [
          problem(
            "The server that runs here has no session: its writes are refused until it joins anew, which it tries by itself",
            slow,
          ),
        ]
      : []),
    ...(running !== undefined && here.length > 0 && left < LATE_MS
      ? [
          warning(
            `The server that runs here lags behind: in ${Math.round(left / 1000)} s its session is over, which it should have prolonged`,
            slow,
          ),
        ]
      : []),
    ...gone.map(({ name, peer, left }) =>
      warning(
        `The session of the host ${name} (${peer}) has been over for ${Math.round(-left / 1000)} s, and it did not end in good order`,
        "others have taken over its share: start it again, or leave it",
      ),
    ),
  ];
}

/** The default location of the cache is next to the metadata. */
async function metadataOf(installation: Installation): Promise<string> {
  return (await inspectedRepo(installation))?.metadata?.path ?? join(repoOf(installation), "metadata");
}
