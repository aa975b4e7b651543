import type { OptionDeclarations } from "../../core/types.ts";

export const options = {
  admin_socket: {
    type: "path",
    per_host: false,
    example: "/run/modhost/admin.sock",
    describe:
      "Path of the Unix socket at which commands such as `modhost status` reach the running server; default: `admin.sock` in `data_path`. Only the user that runs the server can connect. A path has at most 107 bytes.",
  },
} as const satisfies OptionDeclarations;
