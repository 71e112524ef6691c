/** Of the repository: as far up from here as from the bundle of the command. */
export const root = new URL("../../../", import.meta.url);
