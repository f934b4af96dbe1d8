"""What makes documents of a country and of a company: words, marks, seals, wordings that are kept."""

from __future__ import annotations

import dataclasses
import itertools
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docgen_core.llm.languages import LANGUAGES
from docgen_core.money import rounded
from docgen_core.packs.invoice.layouts import LAYOUTS, logo, render_page, sheet, tape
from docgen_core.packs.invoice.model import Basis, Instalment, Original
from docgen_core.packs.invoice.words import wordings, words_for
from docgen_core.render import fonts
from docgen_core.render.chromium import Renderer

SPOKEN_ALIKE = {"Contact", "Factor", "Signature", "Subtotal"}
"""Words that are English ones, and such of French, Spanish, Portuguese or Dutch."""
PAPERS = [(layout, paper) for layout, info in LAYOUTS.items() for paper in info.papers if paper != "receipt"]


SHARE = Basis(contract_total=Decimal(900), progress_percent=Decimal(40), previous_percent=Decimal(10))
FEE = Basis(fee_code="123", factor=Decimal("1.5"))


def _based(invoice, basis):
    """The document with lines that follow from `basis`."""
    if basis.contract_total is not None:
        basis = dataclasses.replace(basis, contract_total=rounded(basis.contract_total, invoice.minor_units))
    return dataclasses.replace(invoice, lines=tuple(dataclasses.replace(line, basis=basis) for line in invoice.lines))


def _settled(invoice, kind):
    """A document of the kind with every row that totals can have."""
    day, amount = invoice.issue_date, invoice.totals.gross_total
    every = dict.fromkeys(("shipping", "tip", "rounding", "credit_used", "credit_before", "credit_left"), amount)
    return dataclasses.replace(
        invoice,
        kind=kind,
        original=Original("R-1", day),
        instalments=(Instalment(1, day, amount),),
        totals=dataclasses.replace(invoice.totals, **every),
        lines=tuple(dataclasses.replace(line, commodity_code="848210") for line in invoice.lines),
    )


class TestWords:
    def test_every_language_has_every_word(self):
        for language in LANGUAGES:
            assert set(wordings(language)) == set(wordings("en")), language

    def test_no_language_borrows_from_another(self):
        english = {text for options in wordings("en").values() for text in options if len(text) > 5}
        for language in set(LANGUAGES) - {"en"}:
            assert english & {text for options in wordings(language).values() for text in options} <= SPOKEN_ALIKE

    def test_a_company_keeps_its_wording(self):
        assert words_for("de", 11) == words_for("de", 11)

    def test_companies_differ_in_wording(self):
        for language in LANGUAGES:
            assert len({tuple(words_for(language, seed).values()) for seed in range(50)}) > 40

    def test_there_is_no_word_that_no_page_asks_for(self, sample, monkeypatch):
        asked = set()

        class Asked(dict):
            def __getitem__(self, key):
                asked.add(key)
                return super().__getitem__(key)

        monkeypatch.setattr(sheet, "words_for", lambda language, seed: Asked(words_for(language, seed)))
        for locale, layout in itertools.product(("de-DE", "en-US", "ja-JP"), LAYOUTS):
            rich = sample(locale, layout, discounts=True, prepaid="100")
            bare = dataclasses.replace(sample(locale, layout, style=LAYOUTS[layout].table_styles[0]), notes=())
            on_a_day = dataclasses.replace(rich, service_from=rich.service_to)
            settled = _settled(rich, "credit_note"), _settled(rich, "corrective_invoice")
            for invoice in (rich, bare, on_a_day, *settled, _based(rich, SHARE), _based(rich, FEE)):
                for model in ("per_unit", "hourly"):
                    render_page(dataclasses.replace(invoice, billing_model=model))
        assert set(wordings("en")) == asked

    @pytest.mark.parametrize("locale", ["de-DE", "en-US", "ja-JP"])
    def test_goods_are_delivered_and_services_rendered(self, sample, locale):
        goods = sample(locale, "letter")
        words = words_for(locale, goods.identity.logo_seed)
        trades = (("per_unit", "office_supplies", "delivery"), ("per_unit", "training_provider", "service"))
        for model, trade, what in (*trades, ("hourly", "office_supplies", "service")):
            period = dataclasses.replace(goods, billing_model=model, business_type=trade)
            day = dataclasses.replace(period, service_from=period.service_to)
            for invoice, word in ((period, f"{what}_period"), (day, f"{what}_date")):
                ((label, _),) = sheet.Sheet(invoice).facts("service")
                assert label == words[word]

    def test_japanese_periods_have_their_own_sign(self, sample):
        ((_, japanese),) = sheet.Sheet(sample("ja-JP", "letter", date_style="y/MM/dd")).facts("service")
        ((_, american),) = sheet.Sheet(sample("en-US", "letter", date_style="MM/dd/y")).facts("service")
        assert japanese.striptags() == "2024/02/01～2024/02/29"
        assert american.striptags() == "02/01/2024 – 02/29/2024"

    def test_every_face_draws_the_words(self):
        for language in LANGUAGES:
            words = "".join(text for options in wordings(language).values() for text in options)
            fonts.check(words, fonts.FACES.families)

    def test_americans_are_not_addressed_before_the_table(self, sample):
        for layout in ("letter", "boxed"):
            body = render_page(sample("en-US", layout)).body
            assert "greeting" not in body
            assert "<p></p>" not in body
        told = " ".join(text for options in wordings("en-US").values() for text in options)
        for british in ("supply", "Your order", "charge you", "invoice you", "Tel."):
            assert british not in told

    def test_tax_is_added_only_where_there_is_some(self, sample):
        seed = next(seed for seed in range(20) if words_for("de", seed)["plus"])
        invoice = sample("de-DE", "letter", seed=seed)
        first, second = invoice.tax_lines
        invoice = dataclasses.replace(invoice, tax_lines=(first, dataclasses.replace(second, rate=Decimal(0))))
        labels = [total.label for total in sheet.Sheet(invoice).totals() if total.css == "tax"]
        assert [label.startswith("zzgl.") for label in labels] == [True, False]


class TestCountries:
    @pytest.mark.parametrize("layout", ["letter", "ledger", "sidebar", "boxed"])
    def test_a_japanese_invoice_is_japanese(self, printed, layout):
        text = "".join(printed(locale="ja-JP", layout=layout).texts()).replace(" ", "")
        for sign in ("請求書", "御中", "〒320-0033", "消費税(10%対象)", "消費税(8%対象)", "※", "2024年3月5日"):
            assert sign in text
        assert "円" in text or "¥" in text or "￥" in text
        assert text.index("〒320-0033") < text.index("御中")

    @pytest.mark.parametrize("layout", ["letter", "ledger", "sidebar", "boxed"])
    def test_a_german_invoice_is_german(self, printed, layout):
        text = printed(locale="de-DE", layout=layout).texts()
        for sign in ("Rechnung", "USt. 19 %", "DE02 9999 0000 0000 0815 42", "05.03.2024", "2.581,00", "€"):
            assert sign in text[0].replace("\u00a0", " ")

    @pytest.mark.parametrize("layout", ["letter", "ledger", "sidebar", "boxed"])
    def test_an_american_invoice_is_american(self, printed, layout):
        document = printed(locale="en-US", layout=layout)
        for sign in ("Invoice", "Net 30", "State sales tax (8.25%)", "2,726.00", "$", "Mar 5, 2024"):
            assert sign in document.texts()[0]
        assert document.rendered.page_sizes[0] == pytest.approx((612, 792), abs=1)

    def test_a_receipt_has_letters_for_its_rates_and_a_mark_in_japan(self, printed):
        assert "2.581,00 B" in printed(locale="de-DE", layout="receipt").texts()[0]
        japanese = printed(locale="ja-JP", layout="receipt").texts()[0]
        assert "(会議用)※" in japanese.replace(" ", "")


def test_every_row_that_totals_can_have_fits_on_every_layout(sample):
    """Nothing gets wider than the page: a print that the browser had to make smaller is refused."""
    with Renderer() as renderer:
        for layout in set(LAYOUTS) - {"receipt"}:
            invoice = _settled(sample("en-US", layout, discounts=True, prepaid="100"), "invoice")
            parts = tuple(dataclasses.replace(invoice.instalments[0], number=number) for number in (1, 2, 3, 4))
            page = render_page(dataclasses.replace(invoice, instalments=parts, original=None))
            renderer.render(page, document_id=layout, subject="Sample")


class TestIdentity:
    @pytest.mark.parametrize(("layout", "paper"), PAPERS)
    def test_every_layout_is_printed_on_each_of_its_papers(self, printed, layout, paper):
        size = {"A4": (595, 842), "Letter": (612, 792)}[paper]
        document = printed(locale="de-DE", layout=layout, paper=paper, lines=2)
        turned = LAYOUTS[layout].landscape
        assert document.rendered.page_sizes[0] == pytest.approx(size[::-1] if turned else size, abs=1)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_a_table_style_changes_the_page(self, sample, layout):
        styles = LAYOUTS[layout].table_styles
        pages = {render_page(sample("de-DE", layout, style=style)).body for style in styles}
        assert len(pages) == len(styles)

    @pytest.mark.parametrize(("accent", "ink"), [("#0b3954", "#ffffff"), ("#ffe08a", "#1b1b1b")])
    def test_text_on_the_accent_can_be_read(self, sample, accent, ink):
        style = render_page(sample("de-DE", "letter", style="striped", accent=accent)).style
        assert f"background: {accent}; color: {ink}" in style

    def test_companies_differ_in_the_order_of_columns(self, sample):
        orders = {
            tuple(entry.column for entry in render_page(sample("de-DE", "letter", lines=1, seed=seed)).prints)
            for seed in range(12)
        }
        assert len(orders) >= 3


class TestMarks:
    def test_a_company_keeps_its_logo(self):
        assert logo.logo(5, "#123456", "AB") == logo.logo(5, "#123456", "AB")

    def test_companies_differ_in_logo(self):
        assert len({logo.logo(seed, "#123456", "AB") for seed in range(40)}) > 25

    def test_a_logo_escapes_its_monogram(self):
        assert all("<b>" not in logo.logo(seed, "#123456", "<b>") for seed in range(40))

    def test_a_seal_holds_the_japanese_name_and_ends_in_the_sign_of_a_seal(self):
        signs = logo.seal("株式会社東海精機工業")
        for sign in "株式会社東海精機工業之印":
            assert f">{sign}</text>" in signs

    def test_a_name_without_japanese_signs_has_no_seal(self):
        assert logo.seal("Cedar Ridge Supply Co.") == ""


LINE_TEXT = st.text(st.sampled_from("abcdefgh -&<0123456789ひらがな漢字、。"), max_size=120)


class TestTape:
    @given(LINE_TEXT)
    def test_folding_loses_nothing_but_spaces(self, text):
        assert "".join(tape.wrapped(text, 12).split()) == "".join(text.split())

    @given(LINE_TEXT)
    def test_no_folded_line_is_too_wide(self, text):
        assert all(tape.width_em(line) <= 12 for line in tape.wrapped(text, 12).split("\n"))

    def test_words_stay_whole_where_they_can(self):
        assert tape.wrapped("Deep groove ball bearing", 9) == "Deep groove\nball bearing"

    def test_no_line_begins_with_a_closing_sign(self):
        assert tape.wrapped("東京、大阪", 2.5) == "東\n京、\n大阪"
