/**
 * Prints each failed test of JUnit reports with the first lines of its message, then what they count, and closes with
 * `N passed, N failed`. A report that is missing or counts nothing is a failure.
 */
const MESSAGE_LINES = 15

let passed = 0
let failed = 0
let skipped = 0

const attribute = (element: string, name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(element)?.[1] ?? ''

const REFERENCES: Readonly<Record<string, string>> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"' }

const unescaped = (text: string) =>
  text.replace(/&(?:#(\d+)|(\w+));/g, (whole, code, name) =>
    code === undefined ? (REFERENCES[name] ?? whole) : String.fromCodePoint(Number(code)),
  )

/** Where a failed test is, its name below the names around it, which Bun writes from the inside out, and its message. */
function told(testcase: string, failure: string): string {
  const [file, line, name] = ['file', 'line', 'name'].map((each) => unescaped(attribute(testcase, each)))
  const around = unescaped(attribute(testcase, 'classname')).split(' > ').reverse()
  const message = unescaped(attribute(failure, 'message')).split('\n').slice(0, MESSAGE_LINES)
  const title = [...around, name].filter((each) => each !== '').join(' > ')
  return [`${file}:${line} ${title}`, ...message.map((each) => `    ${each}`.trimEnd())].join('\n')
}

for (const path of process.argv.slice(2)) {
  const report = Bun.file(path)
  const text = (await report.exists()) ? await report.text() : ''
  const root = /<testsuites\b[^>]*>/.exec(text)?.[0] ?? ''
  const count = (name: string) => Number(attribute(root, name))
  for (const [, testcase = '', failure = ''] of text.matchAll(
    /(<testcase\b[^>]*[^/]>)\s*(<(?:failure|error)\b[^>]*>)/g,
  )) {
    console.log(told(testcase, failure))
  }
  if (count('tests') === 0) {
    console.error(`${path} counts no test`)
    failed += 1
    continue
  }
  const refused = count('failures') + count('errors')
  passed += count('tests') - refused - count('skipped')
  failed += refused
  skipped += count('skipped')
}

console.log(`${skipped} skipped`)
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 ? 0 : 1)
