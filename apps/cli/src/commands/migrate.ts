import { migrate as migrateDatabase } from "@millrace/devstack";
import { type Command, defineCommand } from "../command.ts";
import { CommandError, messageOf, UsageError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { withoutPassword } from "../secrets.ts";

export const migrate: Command = defineCommand({
  name: "migrate",
  summary: "bring the database to the newest schema",
  isClient: false,
  options: {
    "database-url": {
      type: "string",
      value: "url",
      description: "which database (default: DATABASE_URL)",
    },
  },
  details: [
    "Migrations only go forward, and running it again changes nothing. `dev` and `demo` do it by " +
      "themselves.",
  ],
  examples: ["DATABASE_URL=postgres://millrace@db/millrace millrace migrate"],
  run: async ({ output, settings }, { options }) => {
    const databaseUrl = options["database-url"] ?? settings.databaseUrl;
    if (databaseUrl === undefined) {
      throw new UsageError("migrate needs --database-url, or DATABASE_URL in the environment");
    }
    const shown = withoutPassword(databaseUrl);
    try {
      await migrateDatabase(databaseUrl);
    } catch (error) {
      throw new CommandError("MIGRATION_FAILED", `${shown}: ${messageOf(error)}`, { cause: error });
    }
    if (output.isJson) output.json({ database: shown, migrated: true });
    else output.line(`${shown} has the newest schema.`);
    return EXIT.done;
  },
});
