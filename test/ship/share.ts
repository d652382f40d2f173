import { run } from '../../src/cli/cli.ts'
import { makeIo } from '../support/io.ts'
import { manualPage } from './manual-page.ts'

/** The shells, by the paths in a folder `share` where they look for their scripts. */
const COMPLETIONS = {
  'share/bash-completion/completions/plantstore': 'bash',
  'share/zsh/site-functions/_plantstore': 'zsh',
  'share/fish/vendor_completions.d/plantstore.fish': 'fish',
}

/** The completions and the manual page, by their paths in `/usr` or `/usr/local`. */
export async function shareFiles(committedAt: Date): Promise<Readonly<Record<string, string>>> {
  const completions = Object.entries(COMPLETIONS).map(async ([path, shell]) => {
    const { io, stdout } = makeIo(['completion', shell])
    await run(io)
    return [path, stdout()] as const
  })
  return {
    'share/man/man1/plantstore.1': await manualPage(committedAt),
    ...Object.fromEntries(await Promise.all(completions)),
  }
}
