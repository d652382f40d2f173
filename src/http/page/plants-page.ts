import { makeAsset } from './asset.ts'
import { bundle } from './bundle.ts' with { type: 'macro' }
import { makePage, type Page } from './html.ts'

const STYLE = bundle('page.css')
const SCRIPT = bundle('main.tsx')

/** Makes the page on which users see and tend their plants. It uses the public API alone. */
export async function makePlantsPage(hasDocs: boolean): Promise<Page> {
  return makePage({
    assets: [await makeAsset('page', 'css', new Blob([STYLE])), await makeAsset('page', 'js', new Blob([SCRIPT]))],
    hasHelp: hasDocs,
    // The style has small images in it.
    policy: ["style-src 'self'", "img-src 'self' data:", "connect-src 'self'"],
  })
}
