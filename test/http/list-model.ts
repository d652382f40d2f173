/** What a client asks of a list, as its query string says it. */
export interface Asked {
  readonly limit?: number
  readonly after?: bigint
}

/** The plants of a user as they ought to be: names by id. */
export type Model = Map<bigint, string>

/** The query string that asks this. */
export function queryOf({ limit, after }: Asked): string {
  const parameters = [
    ...(limit === undefined ? [] : [`limit=${limit}`]),
    ...(after === undefined ? [] : [`after=${after}`]),
  ]
  return parameters.length === 0 ? '' : `?${parameters.join('&')}`
}

/** What has to be answered to this: the names in the order of their ids, and the `Link` where more follow. */
export function expectedList(model: Model, { limit = Number.POSITIVE_INFINITY, after }: Asked) {
  const ids = [...model.keys()].filter((id) => after === undefined || id > after).sort((a, b) => (a < b ? -1 : 1))
  const shown = ids.slice(0, Math.min(limit, ids.length))
  const leadsOn = shown.length > 0 && shown.length < ids.length
  return {
    names: shown.map((id) => model.get(id) ?? ''),
    link: leadsOn ? `<?limit=${limit}&after=${shown.at(-1)}>; rel="next"` : null,
  }
}
