import assert from "node:assert/strict";
import { mkdtemp, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CredentialSource, parseCredentials } from "#node/storage/shared/s3/credentials.ts";
import { type S3Settings, s3AddressOf } from "#node/storage/shared/s3/settings.ts";

test("the address of a store comes from the region on AWS and from the endpoint elsewhere, with the bucket in the path or the host", () => {
  const describe = (settings: S3Settings, environment = {}) => {
    const { name, origin, root, prefix, region } = s3AddressOf(settings, environment);
    return [name, origin, root, prefix, region].join(" ");
  };
  assert.equal(
    describe({ url: "s3://my-bucket/a/b/" }),
    "s3://my-bucket/a/b/ https://my-bucket.s3.us-east-1.amazonaws.com / a/b/ us-east-1",
  );
  assert.equal(
    describe({ url: "s3://b.c.d" }, { AWS_REGION: "eu-west-1" }),
    "s3://b.c.d/ https://s3.eu-west-1.amazonaws.com /b.c.d/  eu-west-1",
  );
  const endpoint = "http://127.0.0.1:9000";
  assert.equal(describe({ url: "s3://buck", endpoint }), "s3://buck/ http://127.0.0.1:9000 /buck/  us-east-1");
  assert.equal(
    describe({ url: "s3://buck", pathStyle: false, region: "here" }, { AWS_ENDPOINT_URL: "https://store:8443/" }),
    "s3://buck/ https://buck.store:8443 /  here",
  );
  const wrong: S3Settings[] = [
    { url: "http://b" },
    { url: "s3://Bucket" },
    { url: "s3://buck/a//b" },
    { url: "s3://buck/../b" },
    { url: "s3://buck", endpoint: "127.0.0.1:9000" },
    { url: "s3://buck", endpoint: "https://store/path" },
  ];
  for (const settings of wrong) assert.throws(() => s3AddressOf(settings, {}), /write (s3|https):\/\/|must not have/);
});

test("credentials are read from both file formats, and errors never show them", () => {
  const ini =
    "[default]\naws_access_key_id=A\naws_secret_access_key = B/+=\n\n[ profile other ]\r\naws_access_key_id=C\r\naws_secret_access_key=D\r\naws_session_token=E\r\n";
  const read = (text: string, profile = "default") => {
    const { accessKeyId, secretAccessKey, sessionToken, expires } = parseCredentials(text, profile, "/file");
    return [accessKeyId, secretAccessKey, sessionToken, expires];
  };
  assert.deepEqual(read(ini), ["A", "B/+=", undefined, undefined]);
  assert.deepEqual(read(ini, "other"), ["C", "D", "E", undefined]);
  const json = {
    Version: 1,
    AccessKeyId: "A",
    SecretAccessKey: "B",
    SessionToken: "C",
    Expiration: "2026-01-02T03:04:05Z",
  };
  assert.deepEqual(read(JSON.stringify(json)), ["A", "B", "C", Date.UTC(2026, 0, 2, 3, 4, 5)]);
  for (const [text, message] of [
    [ini, /\/file: it has no section \[none\]/],
    ['{"AccessKeyId":"very-secret"', /it is not JSON/],
    ['{"AccessKeyId":"very-secret"}', /no access key id, or no secret access key/],
    ['{"AccessKeyId":"very-secret","SecretAccessKey":"x","Expiration":"soon"}', /its expiration is not a date/],
  ] as const) {
    assert.throws(
      () => read(text, "none"),
      (error: Error) => message.test(error.message) && !error.message.includes("very-secret"),
    );
  }
});

test("a credentials file is read again when it has changed, has expired or was refused", async () => {
  const folder = await mkdtemp(join(tmpdir(), "modhost-credentials-"));
  const file = join(folder, "credentials");
  let version = 0;
  const write = async (values: object) => {
    await writeFile(`${file}.new`, JSON.stringify(values));
    await utimes(`${file}.new`, (version += 1), version);
    await rename(`${file}.new`, file);
  };
  const source = new CredentialSource({ file }, {});
  await assert.rejects(
    source.current(),
    /there are no credentials for the object store: .*ENOENT.*Set AWS_ACCESS_KEY_ID/,
  );
  await write({ AccessKeyId: "1", SecretAccessKey: "x" });
  const first = await source.current();
  assert.equal(first.accessKeyId, "1");
  assert.equal(await source.renewed(first), false);
  await write({ AccessKeyId: "2", SecretAccessKey: "x", Expiration: new Date(Date.now() - 1000).toISOString() });
  await assert.rejects(source.renewed(first), {
    code: "STORE_UNAVAILABLE",
    message: /credentials in .* have expired at/,
  });
  await write({ AccessKeyId: "3", SecretAccessKey: "x" });
  assert.equal(await source.renewed(first), true);
  await writeFile(file, "{ half");
  assert.equal(await source.renewed(first), true);
  assert.equal((await source.current()).accessKeyId, "3");
  await rm(folder, { recursive: true });
});

test("a named file has priority over the environment, and the environment over the file of the AWS tools", async () => {
  const environment = { AWS_ACCESS_KEY_ID: "E", AWS_SECRET_ACCESS_KEY: "x", AWS_SESSION_TOKEN: "y" };
  const found = await new CredentialSource({}, { ...environment, AWS_SHARED_CREDENTIALS_FILE: "/none" }).current();
  assert.deepEqual([found.accessKeyId, found.sessionToken], ["E", "y"]);
  await assert.rejects(new CredentialSource({ file: "/none" }, environment).current(), /\/none/);
  await assert.rejects(new CredentialSource({}, { AWS_SHARED_CREDENTIALS_FILE: "/other" }).current(), /\/other/);
  await assert.rejects(
    new CredentialSource({}, { AWS_ACCESS_KEY_ID: "E" }).current(),
    /AWS_SECRET_ACCESS_KEY is not: set both/,
  );
});
