/** Behind so many characters of JSON a page ends, since the whole of it is in memory at once. */
export const pageCharacters = 8_388_608;

/** How large they are shows when they are read, so that no more than these go beyond the page's end. */
export const readAtOnce = 25;
