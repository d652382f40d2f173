/** Prints what JUnit reports count, and closes with `N passed, N failed`. A report that is missing or counts nothing is a failure. */
let passed = 0
let failed = 0
let skipped = 0

for (const path of process.argv.slice(2)) {
  const report = Bun.file(path)
  const root = (await report.exists()) ? /<testsuites\b[^>]*>/.exec(await report.text())?.[0] : undefined
  const count = (name: string) => Number(new RegExp(`\\b${name}="(\\d+)"`).exec(root ?? '')?.[1] ?? 0)
  if (root === undefined || count('tests') === 0) {
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
