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
    if (!URL.canParse(databaseUrl) || !/^postgres(ql)?:$/.test(new URL(databaseUrl).protocol)) {
      const source = options["database-url"] === undefined ? "DATABASE_URL" : "--database-url";
      throw new UsageError(`${source} must be a URL such as postgres://user@host:5432/database`);
    }
    const shown = withoutPassword(databaseUrl);
    try {
      await migrateDatabase(databaseUrl);
    } catch (error) {
      throw new CommandError("MIGRATION_FAILED", `${shown}: ${messageOf(error)}`, {
        advice: "Does it run, is there such a database, and may this user change its schema?",
        cause: error,
      });
    }
    if (output.isJson) output.json({ database: shown, migrated: true });
    else output.line(`${shown} has the newest schema.`);
    return EXIT.done;
  },
});
