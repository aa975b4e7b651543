/** Operations on the configuration: show, edit, plan and apply. */
import { defineChange, defineOperation } from "./operation.ts";

const text = {
  type: "string",
  required: true,
  describe: "The whole text of the config file",
  maxLength: 1024 * 1024,
} as const;

export const configOperations = [
  defineOperation({
    name: "config",
    method: "GET",
    path: "/config",
    scope: "read",
    help: "Every option with its value in force and where it comes from; secrets are not shown",
    response: { type: "array", items: { $ref: "#/components/schemas/OptionState" } },
    run: ({ server }) => server.config.options(),
  }),
  defineOperation({
    name: "config_file",
    method: "GET",
    path: "/config/file",
    // The text contains secrets, because whoever edits the file must send them back.
    scope: "admin",
    help: "The config file as it is, secrets and all, with the etag that config_save wants",
    response: "ConfigFile",
    run: ({ server }) => server.config.file(),
  }),
  defineOperation({
    name: "config_check",
    method: "POST",
    path: "/config/check",
    scope: "admin",
    help: "What a text in place of the config file's would do, or what is wrong in it, and where; nothing is changed",
    input: { text },
    response: "ConfigCheck",
    run: ({ server, input }) => server.config.check(input.text),
  }),
  defineChange({
    name: "config_save",
    path: "/config/file",
    help: "Write the config file and apply it, as a whole or not at all; refused when somebody else has changed it meanwhile",
    input: {
      text,
      etag: { type: "string", required: true, describe: "Of the text that was edited, from config_file" },
    },
    run: ({ server, by, input }) => server.config.save(input.text, input.etag, { by }),
  }),
  defineOperation({
    name: "plan",
    method: "GET",
    path: "/plan",
    scope: "read",
    help: "What a changed configuration makes of the server: the file is read again, and nothing is changed",
    response: "ConfigPlan",
    run: ({ server }) => server.plan(),
  }),
  defineChange({
    name: "apply",
    path: "/apply",
    help: "Put a changed configuration in force, as a whole or not at all",
    run: ({ server, by }) => server.apply({ by }),
  }),
];
