/** Checks of `modhost doctor` on the store that several hosts share, where `node_store` names one. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { examineStore, type SharedStoreSettings, type StoreExamined } from "modhost/node";
import {
  type Check,
  existing,
  type Finding,
  type Installation,
  isWritable,
  problem,
  warning,
} from "../../../../core/cli/index.ts";
import { size_text } from "../../../../core/net/http.ts";
import { examined, repoOf } from "./installation.ts";

/** The tests run with this one. */
const TESTED_VERSION = 15;
/** Milliseconds by which the clocks may differ; object stores refuse requests from a quarter of an hour on. */
const MAX_SKEW_MS = 60_000;
/** Milliseconds of a lease: a host that is well has more left, and at most 30,000. */
const LATE_MS = 15_000;

/** What checks are given; none of them runs without a store. */
interface Place {
  readonly store: StoreExamined;
  readonly settings: SharedStoreSettings;
  readonly installation: Installation;
}

/** Undefined where no shared store is configured. */
export function storeSettings({ config }: Installation): SharedStoreSettings | undefined {
  try {
    return config?.value("node_store") as SharedStoreSettings | undefined;
  } catch {
    // What is wrong with the value the check of the configuration tells.
    return undefined;
  }
}

interface StoreCheck extends Pick<Check, "name" | "help"> {
  findings(place: Place): readonly Finding[] | Promise<readonly Finding[]>;
}

/** `waitMs`: how long the database is waited for, and a notice of it; seconds by default. */
export function checksOfStore(waitMs?: number): readonly Check[] {
  // One look for all checks.
  const known = new WeakMap<Installation, Promise<StoreExamined>>();
  const look = async (settings: SharedStoreSettings, installation: Installation) =>
    examineStore(settings, { metadata: await metadataOf(installation), waitMs });
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
        // Most say what to do themselves.
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
      const { folder, bytes, most } = cache;
      const above = existing(folder);
      if (!isWritable(above))
        return [
          problem(`${above} cannot be written to`, "chown it to the user that runs the server, or set cache_path"),
        ];
      const free = system.space(above)?.free;
      if (free === undefined || bytes + free >= most) return [];
      return [
        warning(
          `The cache ${folder} may take ${size_text(most)}, has ${size_text(bytes)}, and only ${size_text(free)} are free`,
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
              `Hosts have ${keys} keys for names in common, and this one does not know them`,
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
        ? hostFindings(database.found.tables, installation, (await examined(installation))?.peer)
        : []),
    ],
  },
];

type Tables = NonNullable<Extract<StoreExamined["database"], { found: unknown }>["found"]["tables"]>;

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

/** Beside it is the cache, where none is named. */
async function metadataOf(installation: Installation): Promise<string> {
  return (await examined(installation))?.metadata?.path ?? join(repoOf(installation), "metadata");
}
