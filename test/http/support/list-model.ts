/** The parameters of a list. */
export interface Asked {
  readonly limit?: number
  readonly after?: bigint
}

/** The plants that a list of a user must show, by id. */
export type Model<T = string> = Map<bigint, T>

/** The query string with these parameters. */
export function queryOf({ limit, after }: Asked): string {
  const parameters = [
    ...(limit === undefined ? [] : [`limit=${limit}`]),
    ...(after === undefined ? [] : [`after=${after}`]),
  ]
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}

/** The answer to a list: the plants in the order of their ids, and the `Link` if more follow. */
export function expectedList<T>(model: Model<T>, { limit = Number.POSITIVE_INFINITY, after }: Asked) {
  const following = [...model].filter(([id]) => after === undefined || id > after).sort(([a], [b]) => (a < b ? -1 : 1))
  const page = following.slice(0, Math.min(limit, following.length))
  const leadsOn = page.length > 0 && page.length < following.length
  return {
    shown: page.map(([, plant]) => plant),
    link: leadsOn ? `<?limit=${limit}&after=${page.at(-1)?.[0]}>; rel="next"` : null,
  }
}
