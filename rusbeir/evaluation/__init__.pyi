from . import label_agreement as label_agreement
from .families import find_families as find_families
from .label_agreement import estimate_mean as estimate_mean
from .language_parts import LanguagePart as LanguagePart
from .language_parts import label_documents as label_documents
from .language_parts import label_queries as label_queries
from .language_parts import split_by_pair as split_by_pair
from .language_parts import split_by_query as split_by_query
from .measures import DEFAULT_MEASURES as DEFAULT_MEASURES
from .measures import check_measures as check_measures
from .measures import deepest as deepest
from .measures import format_measure as format_measure
from .measures import is_count as is_count
from .orders import CORRELATIONS as CORRELATIONS
from .orders import MIN_SYSTEMS as MIN_SYSTEMS
from .orders import Sides as Sides
from .orders import compare_orders as compare_orders
from .orders import count_queries_needed as count_queries_needed
from .orders import draw_systems as draw_systems
from .orders import rank as rank
from .scoring import Evaluation as Evaluation
from .scoring import cluster_queries as cluster_queries
from .scoring import evaluate as evaluate
from .scoring import strip_language as strip_language
from .significance import ALPHA as ALPHA
from .significance import Figure as Figure
from .significance import Floats as Floats
from .significance import PairTests as PairTests
from .significance import bca_interval as bca_interval
from .significance import bootstrap_intervals as bootstrap_intervals
from .significance import cluster_scores as cluster_scores
from .significance import detectable_deviations as detectable_deviations
from .significance import hierarchical_intervals as hierarchical_intervals
from .significance import minimum_detectable_effect as minimum_detectable_effect
from .significance import rank_intervals as rank_intervals
from .significance import resample_means as resample_means
from .significance import sign_flip_tests as sign_flip_tests
from .units import Units as Units
from .units import describe_queries as describe_queries

FEW_PERMUTATIONS: int
FEW_SAMPLES: int
PERMUTATIONS: int
SAMPLES: int
