/**
 * Gives the node a new identity, as `ipfs key rotate` does. The new identity takes effect at the
 * next start.
 */
import { failure } from "../../util/errors.ts";
import { decodeBase64 } from "../../util/go/base64.ts";
import type { ConfigFile } from "../repo/config.ts";
import { decodeKey, generateKey, identityOf, type KeyOptions } from "./key.ts";
import { type Keystore, self } from "./keystore.ts";

/**
 * Writes a new identity to the configuration and saves the old one in the keystore.
 *
 * @throws NodeError with the text of go-ipfs when the old identity cannot be saved or the new key
 * cannot be generated
 */
export async function rotateIdentity(
  config: ConfigFile,
  keys: Keystore,
  keepAs: string | undefined,
  form: KeyOptions,
): Promise<void> {
  if (keepAs === undefined || keepAs === "") {
    throw failure("OPTION_INVALID", { reason: "keystore name for backing up old key must be provided" });
  }
  if (keepAs === self)
    throw failure("KEY_NAME_INVALID", { reason: "keystore name for back up cannot be named 'self'" });
  const identity = identityOf(await freshKey(form));
  await config.replaceIdentity(async ({ PrivKey }) => {
    await keepOld(keys, keepAs, PrivKey);
    return identity;
  });
}

async function freshKey(form: KeyOptions) {
  if (form.type.toLowerCase() === "ed25519" && form.size !== undefined) {
    throw failure("OPTION_CONFLICT", {
      reason: "creating identity (number of key bits does not apply when using ed25519 keys)",
    });
  }
  return generateKey(form).catch((error: Error) => {
    throw failure("IDENTITY_NOT_ROTATED", { reason: `creating identity (${error.message})` }, error);
  });
}

async function keepOld(keys: Keystore, name: string, secret: string): Promise<void> {
  try {
    if ((await keys.get(name)) !== undefined) {
      throw failure("KEY_EXISTS", { reason: "key by that name already exists, refusing to overwrite" });
    }
    await keys.import(name, decodeKey(decodeBase64(secret)).bytes);
  } catch (error) {
    throw failure(
      "IDENTITY_NOT_ROTATED",
      { reason: `saving old key in keystore (${(error as Error).message})` },
      error,
    );
  }
}
