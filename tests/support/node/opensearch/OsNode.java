// A real OpenSearch node, 2.x or 3.x, from Maven Central jars, all modules on the class path (a protected constructor of Node takes them):
//   javac -cp 'target/lib/*' -d target/main OsNode.java ../Plugins.java
//   java -Xmx512m -cp 'target/main:target/lib/*' OsNode path.home=DIR [http.port=0 discovery.type=single-node any.setting=value ...]
// Prints "listening http://127.0.0.1:PORT" once the node answers; SIGTERM closes it cleanly. DIR gets data/, logs/.
import java.nio.file.*;
import java.util.*;
import org.apache.lucene.analysis.Analyzer;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.index.analysis.AnalyzerProvider;
import org.opensearch.index.analysis.AnalyzerScope;
import org.opensearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.opensearch.node.Node;
import org.opensearch.plugins.AnalysisPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.PluginInfo;

public class OsNode {
    /** The modules by the names of their classes in 2.x; those of 3.x end in ModulePlugin. */
    static final List<String> MODULES = List.of("transport.Netty4", "analysis.common.CommonAnalysis", "index.reindex.Reindex", "painless.Painless",
        "index.mapper.MapperExtras", "index.rankeval.RankEval", "ingest.common.IngestCommon");

    /** What a distribution has beside the modules; used where it is on the class path. */
    static final String KNN = "org.opensearch.knn.plugin.KNNPlugin";

    public static void main(String[] args) throws Exception {
        Settings.Builder s = Settings.builder().put("node.name", "os").put("network.host", "127.0.0.1").put("transport.port", "0").put("http.port", "0")
            .put("http.type", "netty4").put("transport.type", "netty4").put("cluster.routing.allocation.disk.threshold_enabled", false);
        for (String a : args) s.put(a.substring(0, a.indexOf('=')), a.substring(a.indexOf('=') + 1));
        Path home = Path.of(s.get("path.home"));
        for (String d : List.of("modules", "plugins", "logs", "config")) Files.createDirectories(home.resolve(d));
        boolean old = Version.CURRENT.major < 3;
        List<String> names = new ArrayList<>();
        for (String module : MODULES) names.add("org.opensearch." + module + (old ? "Plugin" : "ModulePlugin"));
        if (OsNode.class.getResource("/" + KNN.replace('.', '/') + ".class") != null) names.add(KNN);
        names.add(Languages.class.getName());
        List<Object> plugins = new ArrayList<>();
        for (String name : names) {
            // 2.x takes classes, 3.x descriptions of them; both constructors take a collection.
            plugins.add(old ? Class.forName(name) : new PluginInfo(name, name, "1", Version.CURRENT, "21", name, null, List.of(), false));
        }
        var make = Node.class.getDeclaredConstructor(Environment.class, Collection.class, boolean.class);
        make.setAccessible(true);
        Node node = make.newInstance(new Environment(s.build(), home.resolve("config")), plugins, false);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> { try { node.close(); } catch (Exception e) { e.printStackTrace(); } }));
        node.start();
        System.out.println("listening http://" + node.injector().getInstance(HttpServerTransport.class).boundAddress().publishAddress());
        Thread.currentThread().join();
    }

    /** The official plugins of languages. */
    public static class Languages extends Plugin implements AnalysisPlugin {
        @Override
        public Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> getAnalyzers() {
            Map<String, AnalysisProvider<AnalyzerProvider<? extends Analyzer>>> all = new TreeMap<>();
            Plugins.analyzers().forEach((plugin, make) -> all.put(plugin, (index, env, name, settings) -> new Provider(name, make.get())));
            return all;
        }
    }

    public record Provider(String name, Analyzer get) implements AnalyzerProvider<Analyzer> {
        public AnalyzerScope scope() { return AnalyzerScope.INDEX; }
    }
}
