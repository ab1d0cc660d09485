import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** Writes the terms of the lines of files, a tab before each. Arguments: ANALYZER INPUT OUTPUT, any number of times. */
public class LuceneTerms {
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < args.length; i += 3) {
            Class<?> analyzer = Class.forName("org.apache.lucene.analysis." + args[i]);
            List<String> rows = new ArrayList<>();
            try (Analyzer made = (Analyzer) analyzer.getConstructor().newInstance()) {
                for (String line : Files.readAllLines(Path.of(args[i + 1]))) rows.add(terms(made, line));
            }
            Files.write(Path.of(args[i + 2]), rows);
        }
    }

    static String terms(Analyzer analyzer, String line) throws Exception {
        StringBuilder row = new StringBuilder();
        try (TokenStream tokens = analyzer.tokenStream("", line)) {
            CharTermAttribute term = tokens.addAttribute(CharTermAttribute.class);
            tokens.reset();
            while (tokens.incrementToken()) row.append('\t').append(term);
            tokens.end();
        }
        return row.toString();
    }
}
