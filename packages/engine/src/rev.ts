/**
 * Revision of what `decide` decides. It goes up with every change after which the same signals could
 * lead to another snapshot: the replay check only folds history that the running revision wrote.
 */
export const engineRev = 12;
