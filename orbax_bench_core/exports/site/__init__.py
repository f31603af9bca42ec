"""Morning page of past runs: which suites need a person, trends, every run, at one address."""

from orbax_bench_core.exports.site.cards import Cards as Cards
from orbax_bench_core.exports.site.gathering import gather as gather
from orbax_bench_core.exports.site.view import site_document as site_document
from orbax_bench_core.exports.site.write import PAGE as PAGE
from orbax_bench_core.exports.site.write import renew_site as renew_site
from orbax_bench_core.exports.site.write import write_site as write_site
