/** Address, credentials and limits of an S3 store. */
import { failure } from "../../../util/errors.ts";

export interface S3Settings {
  /** `s3://bucket` or `s3://bucket/prefix`. */
  readonly url: string;
  /**
   * `https://host[:port]`. By default AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or the endpoint of
   * AWS.
   */
  readonly endpoint?: string | undefined;
  /** By default AWS_REGION, AWS_DEFAULT_REGION, or `us-east-1`. */
  readonly region?: string | undefined;
  /**
   * Whether URLs have the bucket in the path instead of the host name. By default true when an
   * endpoint is named.
   */
  readonly pathStyle?: boolean | undefined;
  readonly credentials?: CredentialsFrom | undefined;
  readonly limits?: Partial<Limits> | undefined;
}

export interface Limits {
  /** Maximum number of concurrent connections. */
  readonly connections: number;
  /** Milliseconds for opening a connection, including TLS. */
  readonly connect: number;
  /**
   * Milliseconds without a response, or without progress of a body, after which a request fails.
   */
  readonly stall: number;
  /** Minimum bytes per second: a response whose body was slower for `stall` milliseconds fails. */
  readonly rate: number;
  /** Milliseconds after which a failed call is not tried again. */
  readonly patience: number;
  /** Larger objects are uploaded in parts of this many bytes. Stores require at least 5 MiB. */
  readonly part: number;
}

/** The source of the access keys. */
export interface CredentialsFrom {
  /**
   * A file in the format of `~/.aws/credentials`, or JSON with `AccessKeyId`, `SecretAccessKey`,
   * `SessionToken` and `Expiration`.
   */
  readonly file?: string | undefined;
  /** The section of the file; by default `AWS_PROFILE` or `default`. */
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

export interface S3Address {
  /** `s3://bucket/prefix`. */
  readonly name: string;
  readonly bucket: string;
  /** Empty or ends with a slash. */
  readonly prefix: string;
  readonly region: string;
  /** Origin of requests: `https://host:port`. */
  readonly origin: string;
  /** Path before the key in a request: `/` or `/bucket/`. */
  readonly root: string;
  readonly limits: Limits;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the address of a store.
 * @throws NodeError that says what is wrong with the settings
 */
export function s3AddressOf(settings: S3Settings, environment: Environment): S3Address {
  const { bucket, prefix } = parseUrl(settings.url);
  const { AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL } = environment;
  const region = settings.region || AWS_REGION || AWS_DEFAULT_REGION || "us-east-1";
  const named = settings.endpoint || AWS_ENDPOINT_URL_S3 || AWS_ENDPOINT_URL;
  const endpoint = parseEndpoint(named || `https://s3.${region}.amazonaws.com`);
  // A certificate for *.host does not cover names with additional dots.
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
    throw failure("STORE_ADDRESS_INVALID", {
      reason: `${url} names no bucket: write s3://bucket or s3://bucket/prefix, with the bucket in lower case`,
    });
  }
  const prefix = path.replace(/\/$/, "");
  // URLs drop path parts that are only dots.
  if (prefix !== "" && prefix.split("/").some((part) => ["", ".", ".."].includes(part))) {
    throw failure("STORE_ADDRESS_INVALID", { reason: `${url}: the prefix must not have empty parts, nor . or ..` });
  }
  return { bucket, prefix: prefix === "" ? "" : `${prefix}/` };
}

function parseEndpoint(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && url.username + url.password !== "") {
    throw failure("STORE_ADDRESS_INVALID", {
      reason: "an endpoint has no user and password: access keys come from a file or the environment",
    });
  }
  if (url === null || !/^https?:$/.test(url.protocol) || url.pathname !== "/" || url.search !== "") {
    throw failure("STORE_ADDRESS_INVALID", {
      reason: `${text} is not the endpoint of an object store: write https://host or http://host:port`,
    });
  }
  return url;
}
