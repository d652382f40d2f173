// Tested in test/http/socket/page.test.ts.
/** A plant with the texts of its fields. Its id is text, because a number of JavaScript rounds what is above 2^53. */
export type Plant = Readonly<Record<string, string>> & { readonly id: string; readonly name: string }

/** The fields of a plant in the order of columns and inputs. The server writes them into the page, optional ones with a `?`. */
export const FIELDS = (document.querySelector<HTMLMetaElement>('meta[name=fields]')?.content ?? '')
  .split(' ')
  .map((field) => ({ name: field.replace('?', ''), isOptional: field.endsWith('?') }))

export const FIELD_NAMES = FIELDS.map(({ name }) => name)

/** Like: Name. */
export const titleOf = (field: string): string => field.charAt(0).toUpperCase() + field.slice(1)
