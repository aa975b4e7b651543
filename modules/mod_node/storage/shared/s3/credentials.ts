/** Who asks an S3 store: keys from the environment or a file, which may be written anew at any time. */
import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { failure, NodeError } from "../../../util/errors.ts";
import type { CredentialsFrom, Environment } from "./settings.ts";

export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  /** Milliseconds since 1970. */
  readonly expires?: number | undefined;
}

/** How often a file is looked at, in milliseconds. */
const LOOK_EVERY = 1000;
/** Before they expire, new ones are looked for. */
const EARLY = 60_000;

export class CredentialSource {
  readonly #file: string | undefined;
  readonly #profile: string;
  readonly #environment: Environment;
  #read: { readonly credentials: Credentials; readonly version: string } | undefined;
  #looked = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | undefined;

  /** A file that is named comes first, then the environment, then the file of the AWS tools. */
  constructor(from: CredentialsFrom, environment: Environment) {
    const { AWS_ACCESS_KEY_ID, AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE } = environment;
    const usual = AWS_SHARED_CREDENTIALS_FILE || join(homedir(), ".aws/credentials");
    this.#file = from.file ?? (AWS_ACCESS_KEY_ID ? undefined : usual);
    this.#profile = from.profile ?? (AWS_PROFILE || "default");
    this.#environment = environment;
  }

  /** @throws NodeError when there are none, or they have expired */
  async current(): Promise<Credentials> {
    if (this.#file === undefined) return fromEnvironment(this.#environment);
    if (performance.now() - this.#looked >= LOOK_EVERY) {
      await (this.#looking ??= this.#look(this.#file).finally(() => {
        this.#looking = undefined;
      }));
    }
    const { credentials } = this.#read ?? raise(this.#file, "they could not be read");
    if (credentials.expires !== undefined && credentials.expires <= Date.now()) {
      const since = new Date(credentials.expires).toISOString();
      throw failure("STORE_UNAVAILABLE", { reason: `the credentials in ${this.#file} have expired at ${since}` });
    }
    return credentials;
  }

  /** Those that the store did not take: whether there are others now. */
  async renewed(refused: Credentials): Promise<boolean> {
    this.#looked = Number.NEGATIVE_INFINITY;
    const now = await this.current();
    return (
      now.accessKeyId !== refused.accessKeyId ||
      now.secretAccessKey !== refused.secretAccessKey ||
      now.sessionToken !== refused.sessionToken
    );
  }

  /** Reads the file when it has changed. One that cannot be read leaves what was read before: it may be half written. */
  async #look(file: string): Promise<void> {
    try {
      const { mtimeNs, size, ino } = await stat(file, { bigint: true });
      const version = `${ino} ${size} ${mtimeNs}`;
      const expires = this.#read?.credentials.expires ?? Number.POSITIVE_INFINITY;
      if (this.#read?.version !== version || expires - Date.now() < EARLY) {
        const credentials = parseCredentials(await readFile(file, "utf8"), this.#profile, file);
        this.#read = { credentials, version };
      }
    } catch (error) {
      if (this.#read === undefined) throw NodeError.is(error) ? error : raise(file, (error as Error).message, error);
    }
    this.#looked = performance.now();
  }
}

function fromEnvironment(environment: Environment): Credentials {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = environment;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) {
    throw new NodeError("AWS_ACCESS_KEY_ID is set in the environment, AWS_SECRET_ACCESS_KEY is not: set both");
  }
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN || undefined,
  };
}

function raise(file: string, reason: string, cause?: unknown): never {
  throw new NodeError(
    `there are no credentials for the object store: ${file}: ${reason}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file that has them`,
    { cause },
  );
}

/** @throws NodeError that names the file, never what is in it */
export function parseCredentials(text: string, profile: string, file: string): Credentials {
  const values = text.trimStart().startsWith("{") ? fromJson(text, file) : fromIni(text, profile, file);
  const { accesskeyid, secretaccesskey, sessiontoken, expiration } = values;
  if (!accesskeyid || !secretaccesskey) raise(file, "it has no access key id, or no secret access key");
  const expires = expiration === undefined ? undefined : Date.parse(expiration);
  if (Number.isNaN(expires)) raise(file, "its expiration is no date");
  return {
    accessKeyId: accesskeyid,
    secretAccessKey: secretaccesskey,
    sessionToken: sessiontoken || undefined,
    expires,
  };
}

type Values = Partial<Record<"accesskeyid" | "secretaccesskey" | "sessiontoken" | "expiration", string>>;

function fromJson(text: string, file: string): Values {
  let parsed: object;
  try {
    parsed = JSON.parse(text) as object;
  } catch {
    return raise(file, "it is no JSON");
  }
  const texts = Object.entries(parsed).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(texts.map(([name, value]) => [plain(name), value]));
}

function fromIni(text: string, profile: string, file: string): Values {
  const values: Record<string, string> = {};
  let section: string | undefined;
  let found = false;
  for (const line of text.split(/\r?\n/)) {
    const header = /^\s*\[\s*(?:profile\s+)?([^\]]*?)\s*\]/.exec(line);
    section = header?.[1] ?? section;
    if (section !== profile) continue;
    found = true;
    const [, name, value] = /^\s*([\w-]+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) values[plain(name)] = value;
  }
  return found ? values : raise(file, `it has no section [${profile}]`);
}

/** `aws_access_key_id`, `AccessKeyId` and `accessKeyId` are the same. */
const plain = (name: string) => name.toLowerCase().replace(/^aws/, "").replaceAll(/[_-]/g, "");
