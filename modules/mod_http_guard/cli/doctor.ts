/** Checks of `modhost doctor` for files of users. */
import { type Check, openToOthers } from "../../../core/cli/index.ts";

export const checks: readonly Check[] = [
  {
    name: "passwords",
    help: "Nobody but the server can read the passwords (as hashes) of http_guard_users_file",
    run({ config }) {
      const files = [undefined, ...(config?.hosts() ?? [])].map((host) => config?.value("http_guard_users_file", host));
      return [...new Set(files)].flatMap((file) => openToOthers(file));
    },
  },
];
