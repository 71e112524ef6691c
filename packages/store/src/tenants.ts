/** What it registers serves every tenant that has no definition of its own under that id. */
export const sharedTenant = "default";
