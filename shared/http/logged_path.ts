/** The path of a request as it may be logged: a key in it is left out. */

/** The path of the URL, `/k/KEY/...` as `/k/...`, wherever the app is mounted. */
export function loggedPath(url: string): string {
  return new URL(url).pathname.replace(/\/k\/[^/]+/, "/k/...");
}
