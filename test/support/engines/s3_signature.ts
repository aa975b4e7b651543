/**
 * Verifies the signature of an S3 request (AWS Signature Version 4, in the header), written from
 * the text of its specification.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface S3User {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Requests must contain this token. */
  readonly sessionToken?: string;
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

const MAX_SKEW = 15 * 60_000;

const refuse = (code: string, message: string, status = 403): Refusal => ({ status, code, message });

/**
 * Returns the reason to reject a request, or undefined. `now`: the server's clock in milliseconds
 * since 1970.
 */
export function refusalOf(
  request: IncomingMessage,
  users: readonly S3User[],
  region: string,
  now: number,
): Refusal | undefined {
  const { headers, method = "", url = "" } = request;
  const { authorization = "" } = headers;
  const found =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([\w;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    );
  if (found === null) return refuse("AccessDenied", "Access Denied");
  const [, accessKeyId, day = "", signedRegion = "", signedHeaders = "", signature = ""] = found;
  const user = users.find((each) => each.accessKeyId === accessKeyId);
  if (user === undefined) return refuse("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist.");
  if (signedRegion !== region) return refuse("AuthorizationHeaderMalformed", `the region is ${region}`, 400);
  if (user.sessionToken !== undefined && headers["x-amz-security-token"] !== user.sessionToken) {
    return refuse("ExpiredToken", "The provided token has expired.", 400);
  }
  const date = String(headers["x-amz-date"]);
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, "$1-$2-$3:$4:$5"));
  if (!date.startsWith(day) || !(Math.abs(at - now) <= MAX_SKEW)) {
    return refuse("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.");
  }
  const names = signedHeaders.split(";");
  const mustSign = Object.keys(headers).filter((name) => name === "host" || name.startsWith("x-amz-"));
  if (mustSign.some((name) => !names.includes(name)))
    return refuse("AccessDenied", "There were headers present which were not signed");
  const [path = "", query = ""] = url.split("?");
  const canonical = [
    method,
    path,
    query.split("&").sort().join("&"),
    ...names.map((name) => `${name}:${String(headers[name]).trim().replace(/\s+/g, " ")}`),
    "",
    signedHeaders,
    headers["x-amz-content-sha256"],
  ].join("\n");
  const hash = createHash("sha256").update(canonical).digest("hex");
  const toSign = ["AWS4-HMAC-SHA256", date, `${day}/${region}/s3/aws4_request`, hash].join("\n");
  const key = [day, region, "s3", "aws4_request"].reduce(hmac, Buffer.from(`AWS4${user.secretAccessKey}`));
  if (timingSafeEqual(hmac(key, toSign), Buffer.from(signature, "hex"))) return undefined;
  return refuse(
    "SignatureDoesNotMatch",
    "The request signature we calculated does not match the signature you provided.",
  );
}

const hmac = (key: Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
