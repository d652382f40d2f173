import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { IS_LONG } from '../../support/long.ts'
import { uiOf } from './page.ts'

const LIGHT = { colors: 'light', colorScheme: 'light', background: 'rgb(241, 245, 240)' } as const
const DARK = { colors: 'dark', colorScheme: 'dark', background: 'rgb(13, 20, 16)' } as const
/** The colors of the system in the place of those of the page. */
const FORCED = { colors: 'forced', colorScheme: 'dark', forcedColors: 'active', background: 'rgb(0, 0, 0)' } as const
/** In CSS pixels. A window of 1280 × 1024 pixels has 320 × 256 at a zoom of 400 %, and one of 1440 × 900 has 720 × 450 at 200 %. */
const WINDOWS = [
  [390, 844],
  [320, 256],
  [705, 800],
  [720, 450],
  [1280, 900],
  [2560, 1440],
] as const
/** Narrower screens show each plant as a card, and have buttons for thumbs. */
const PHONE_MAX_PX = 704

const SCREENS = WINDOWS.flatMap(([width, height]) =>
  [DARK, LIGHT, FORCED].map(({ colors, ...scheme }) => ({
    ...scheme,
    name: `${width} px, ${colors}`,
    viewport: { width, height },
    hasTouch: width < PHONE_MAX_PX,
  })),
)

/** The screens of people for a test. `bun run check:long page` tries all of them, and `bun run check` the one that is named. */
export const screensFor = (checked: string) => SCREENS.filter(({ name }) => IS_LONG || name === checked)

/** A folder for pictures of the page, to look at. */
const PICTURES = process.env.PAGE_PICTURES

/** Looks at a page on a screen moment by moment. Keeps a picture of each, and collects what is wrong. `picture` only keeps one. */
export function looksAt(
  page: Page,
  { name, viewport: { width } }: Pick<(typeof SCREENS)[number], 'name' | 'viewport'>,
) {
  const ui = uiOf(page)
  const problems: string[] = []
  const picture = async (moment: string) => {
    if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}, ${moment}.png`) })
  }
  const look = async (moment: string) => {
    await picture(moment)
    const small = width < PHONE_MAX_PX ? await ui.smallTargets() : []
    const wide = (await ui.scrollWidth()) === width ? [] : ['scrolls to the side']
    for (const each of [...(await ui.accessibilityProblems()), ...small, ...wide]) problems.push(`${moment}: ${each}`)
  }
  return { look, picture, problems }
}
