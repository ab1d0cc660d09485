import java.util.*;
import java.util.function.Supplier;
import org.apache.lucene.analysis.*;

/** The analyzers of the official plugins, under their names, where Lucene's jars of them are on the class path; their defaults are Lucene's. */
public class Plugins {
    private static final String LUCENE = "org.apache.lucene.analysis.";
    private static final Map<String, String> CLASSES = Map.of("kuromoji", "ja.JapaneseAnalyzer", "nori", "ko.KoreanAnalyzer", "polish", "pl.PolishAnalyzer",
        "smartcn", "cn.smart.SmartChineseAnalyzer", "ukrainian", "uk.UkrainianMorfologikAnalyzer");

    /** Makers, as an index closes its analyzers. */
    public static Map<String, Supplier<Analyzer>> analyzers() {
        if (Plugins.class.getResource("/org/apache/lucene/analysis/icu/ICUFoldingFilter.class") == null) return Map.of();
        Map<String, Supplier<Analyzer>> all = new TreeMap<>();
        CLASSES.forEach((name, cls) -> all.put(name, () -> (Analyzer) make(cls)));
        all.put("icu_analyzer", () -> new Analyzer() {
            @Override
            protected TokenStreamComponents createComponents(String field) {
                Tokenizer source = (Tokenizer) make("icu.segmentation.ICUTokenizer");
                return new TokenStreamComponents(source, (TokenStream) make("icu.ICUFoldingFilter", TokenStream.class, source));
            }

            @Override
            protected java.io.Reader initReader(String field, java.io.Reader text) {
                return (java.io.Reader) make("icu.ICUNormalizer2CharFilter", java.io.Reader.class, text);
            }
        });
        return all;
    }

    private static Object make(String cls, Object... typeAndArgument) {
        try {
            Class<?> c = Class.forName(LUCENE + cls);
            if (typeAndArgument.length == 0) return c.getConstructor().newInstance();
            return c.getConstructor((Class<?>) typeAndArgument[0]).newInstance(typeAndArgument[1]);
        } catch (ReflectiveOperationException e) { throw new IllegalStateException(cls, e); }
    }
}
