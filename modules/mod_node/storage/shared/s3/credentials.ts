/**
 * Credentials of an S3 store, from the environment or from a file that may be rewritten at any
 * time.
 */
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

/** Milliseconds between checks of the file. */
const CHECK_EVERY_MS = 1000;
/** Milliseconds before expiry from which the file is read again. */
const RENEW_EARLY_MS = 60_000;

export class CredentialSource {
  readonly #file: string | undefined;
  readonly #profile: string;
  readonly #environment: Environment;
  #read: { readonly credentials: Credentials; readonly version: string } | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #checking: Promise<void> | undefined;

  /** A named file has priority, then the environment, then the file of the AWS tools. */
  constructor(from: CredentialsFrom, environment: Environment) {
    const { AWS_ACCESS_KEY_ID, AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE } = environment;
    const usual = AWS_SHARED_CREDENTIALS_FILE || join(homedir(), ".aws/credentials");
    this.#file = from.file ?? (AWS_ACCESS_KEY_ID ? undefined : usual);
    this.#profile = from.profile ?? (AWS_PROFILE || "default");
    this.#environment = environment;
  }

  /**
   * Returns the current credentials.
   * @throws NodeError when there are none or they have expired
   */
  async current(): Promise<Credentials> {
    if (this.#file === undefined) return fromEnvironment(this.#environment);
    if (performance.now() - this.#checkedAt >= CHECK_EVERY_MS) {
      await (this.#checking ??= this.#check(this.#file).finally(() => {
        this.#checking = undefined;
      }));
    }
    const { credentials } = this.#read ?? raise(this.#file, "they could not be read");
    if (credentials.expires !== undefined && credentials.expires <= Date.now()) {
      const since = new Date(credentials.expires).toISOString();
      throw failure("STORE_UNAVAILABLE", { reason: `the credentials in ${this.#file} have expired at ${since}` });
    }
    return credentials;
  }

  /** Checks whether there are other credentials than those that the store refused. */
  async renewed(refused: Credentials): Promise<boolean> {
    this.#checkedAt = Number.NEGATIVE_INFINITY;
    const now = await this.current();
    return (
      now.accessKeyId !== refused.accessKeyId ||
      now.secretAccessKey !== refused.secretAccessKey ||
      now.sessionToken !== refused.sessionToken
    );
  }

  /**
   * Reads the file when it has changed. If that fails, the previous credentials stay, because the
   * file may be half written.
   */
  async #check(file: string): Promise<void> {
    try {
      const { mtimeNs, size, ino } = await stat(file, { bigint: true });
      const version = `${ino} ${size} ${mtimeNs}`;
      const expires = this.#read?.credentials.expires ?? Number.POSITIVE_INFINITY;
      if (this.#read?.version !== version || expires - Date.now() < RENEW_EARLY_MS) {
        const credentials = parseCredentials(await readFile(file, "utf8"), this.#profile, file);
        this.#read = { credentials, version };
      }
    } catch (error) {
      if (this.#read === undefined) throw NodeError.is(error) ? error : raise(file, (error as Error).message, error);
    }
    this.#checkedAt = performance.now();
  }
}

function fromEnvironment(environment: Environment): Credentials {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = environment;
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) {
    throw failure("OBJECT_STORE_CREDENTIALS", {
      reason: "AWS_ACCESS_KEY_ID is set in the environment, AWS_SECRET_ACCESS_KEY is not: set both",
    });
  }
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN || undefined,
  };
}

function raise(file: string, reason: string, cause?: unknown): never {
  throw failure(
    "OBJECT_STORE_CREDENTIALS",
    {
      reason: `there are no credentials for the object store: ${file}: ${reason}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a file that has them`,
    },
    cause,
  );
}

/**
 * Parses credentials.
 * @throws NodeError that names the file, but never its content
 */
export function parseCredentials(text: string, profile: string, file: string): Credentials {
  const values = text.trimStart().startsWith("{") ? fromJson(text, file) : fromIni(text, profile, file);
  const { accesskeyid, secretaccesskey, sessiontoken, expiration } = values;
  if (!accesskeyid || !secretaccesskey) raise(file, "it has no access key id, or no secret access key");
  const expires = expiration === undefined ? undefined : Date.parse(expiration);
  if (Number.isNaN(expires)) raise(file, "its expiration is not a date");
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
    return raise(file, "it is not JSON");
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

/** Normalizes a name: `aws_access_key_id`, `AccessKeyId` and `accessKeyId` are the same. */
const plain = (name: string) => name.toLowerCase().replace(/^aws/, "").replaceAll(/[_-]/g, "");
