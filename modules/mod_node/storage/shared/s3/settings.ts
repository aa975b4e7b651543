/** Where an S3 store is, and how it is spoken to. */
import { NodeError } from "../../../util/errors.ts";

export interface S3Settings {
  /** `s3://bucket` or `s3://bucket/prefix`. */
  readonly url: string;
  /** `https://host[:port]`; that of AWS otherwise, or what AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL says. */
  readonly endpoint?: string | undefined;
  /** AWS_REGION or AWS_DEFAULT_REGION otherwise, or `us-east-1`. */
  readonly region?: string | undefined;
  /** The bucket is in the path, and not a part of the host; so by default where an endpoint is named. */
  readonly pathStyle?: boolean | undefined;
  readonly credentials?: CredentialsFrom | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

export interface Limits {
  /** Connections at a time. */
  readonly connections: number;
  /** Milliseconds until a connection stands, TLS included. */
  readonly connect: number;
  /** Milliseconds for which an answer may keep one waiting, and for which a body may stand still. */
  readonly stall: number;
  /** Bytes in a second: an answer whose body has brought fewer, while it was waited for as long as `stall`, is given up. */
  readonly rate: number;
  /** Milliseconds after which a call that failed is not begun again. */
  readonly patience: number;
  /** Larger objects are sent in parts of so many bytes. 5 MiB is the least that stores take. */
  readonly part: number;
}

/** Where the keys are taken from. */
export interface CredentialsFrom {
  /** In the form of `~/.aws/credentials`, or JSON with `AccessKeyId`, `SecretAccessKey`, `SessionToken` and `Expiration`. */
  readonly file?: string | undefined;
  /** The section of the file; `AWS_PROFILE` or `default` otherwise. */
  readonly profile?: string | undefined;
}

const LIMITS: Limits = {
  connections: 32,
  connect: 5000,
  stall: 15_000,
  rate: 2048,
  patience: 30_000,
  part: 64 * 1024 * 1024,
};

export interface Place {
  /** `s3://bucket/prefix`. */
  readonly name: string;
  readonly bucket: string;
  /** Ends with a slash where it is not empty. */
  readonly prefix: string;
  readonly region: string;
  /** Of requests: `https://host:port`. */
  readonly origin: string;
  /** What stands before a key in the path of a request: `/` or `/bucket/`. */
  readonly root: string;
  readonly limits: Limits;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** @throws NodeError that says what is wrong with the settings */
export function placeOf(settings: S3Settings, environment: Environment): Place {
  const { bucket, prefix } = parseUrl(settings.url);
  const { AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL } = environment;
  const region = settings.region || AWS_REGION || AWS_DEFAULT_REGION || "us-east-1";
  const named = settings.endpoint || AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL;
  const endpoint = parseEndpoint(named || `https://s3.${region}.amazonaws.com`);
  // A certificate for *.host is none for names with further dots.
  const pathStyle = settings.pathStyle ?? (named !== undefined || bucket.includes("."));
  return {
    name: `s3://${bucket}/${prefix}`,
    bucket,
    prefix,
    region,
    origin: pathStyle ? endpoint.origin : `${endpoint.protocol}//${bucket}.${endpoint.host}`,
    root: pathStyle ? `/${bucket}/` : "/",
    limits: { ...LIMITS, ...settings.limits },
  };
}

function parseUrl(url: string): { bucket: string; prefix: string } {
  const [, bucket, path = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(url) ?? [];
  if (bucket === undefined) {
    throw new NodeError(
      `${url} names no bucket: write s3://bucket or s3://bucket/prefix, with the bucket in lower case`,
    );
  }
  const prefix = path.replace(/\/$/, "");
  // URLs lose parts that are dots.
  if (prefix !== "" && prefix.split("/").some((part) => ["", ".", ".."].includes(part))) {
    throw new NodeError(`${url}: the prefix must not have empty parts, nor . or ..`);
  }
  return { bucket, prefix: prefix === "" ? "" : `${prefix}/` };
}

function parseEndpoint(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && url.username + url.password !== "") {
    throw new NodeError("an endpoint has no user and password: access keys come from a file or the environment");
  }
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "") {
    throw new NodeError(`${text} is no endpoint of an object store: write https://host or http://host:port`);
  }
  return url;
}
